package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"time"
)

// taskVariable, in the environment, tells this program to be a replica.
const taskVariable = "PEERBENCH_FLEET"

// A replica is a process of this program, as its parent sees it. It ends when its standard input
// does, also if the parent was killed.
type replica struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// A fleet is replicas at work on one quota.
type fleet []*replica

// startFleet returns once all replicas are ready to begin.
func startFleet(tasks []task) (fleet, error) {
	var f fleet
	for _, t := range tasks {
		r, err := startReplica(t)
		if err != nil {
			return nil, errors.Join(err, f.end())
		}
		f = append(f, r)
	}
	for _, r := range f {
		var ready bool
		if err := r.out.Decode(&ready); err != nil {
			return nil, errors.Join(err, f.end())
		}
	}
	return f, nil
}

func startReplica(t task) (*replica, error) {
	spec, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	if t.Who == throttled {
		cmd = python(throttleScript)
	}
	cmd.Env = append(os.Environ(), taskVariable+"="+string(spec))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &replica{cmd, in, json.NewDecoder(bufio.NewReader(out))}, cmd.Start()
}

// work starts the replicas' work. It returns their reports when all are done, and when they began.
func (f fleet) work() (began time.Time, reports []report, err error) {
	began = time.Now()
	if err := f.begin(); err != nil {
		return began, nil, err
	}
	reports, err = f.reports()
	return began, reports, err
}

func (f fleet) begin() error {
	for _, r := range f {
		if _, err := r.in.Write([]byte("\n")); err != nil {
			return err
		}
	}
	return nil
}

// reports returns the replicas' reports when all are done.
func (f fleet) reports() ([]report, error) {
	all := make([]report, len(f))
	for i, r := range f {
		if err := r.out.Decode(&all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// kill ends the replicas as SIGKILL does, and returns when they have exited.
func (f fleet) kill() {
	for _, r := range f {
		_ = r.cmd.Process.Kill()
	}
	for _, r := range f {
		_ = r.cmd.Wait() // it was killed
	}
}

// end makes the replicas leave Redis in order, and returns when they have ended.
func (f fleet) end() error {
	var errs []error
	for _, r := range f {
		r.in.Close()
	}
	for _, r := range f {
		errs = append(errs, r.cmd.Wait())
	}
	return errors.Join(errs...)
}

// beReplica is the main function of a replica.
func beReplica(spec string) error {
	var t task
	if err := json.Unmarshal([]byte(spec), &t); err != nil {
		return err
	}
	run, end, err := t.prepare()
	if err != nil {
		return err
	}
	out, in := json.NewEncoder(os.Stdout), bufio.NewReader(os.Stdin)
	if err := out.Encode(true); err != nil {
		return err
	}
	if _, err := in.ReadByte(); err != nil {
		return end.Close() // it is not to begin
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = in.ReadByte() // no more input
	}()
	done := make(chan report, 1)
	go func() { done <- run() }()
	select {
	case rep := <-done:
		if err := out.Encode(rep); err != nil {
			return err
		}
		<-ended
		return end.Close()
	case <-ended:
		return errors.New("fleet: replica lost its parent")
	}
}
