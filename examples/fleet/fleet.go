package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A fleet is the replicas, a process each. It is safe for concurrent use.
type fleet struct {
	task task        // of each, except its number
	fail func(error) // called when a replica ends by itself

	mu       sync.Mutex
	replicas []*replica // in the order of their numbers
}

// A replica is one place in the fleet: its process may be killed, and then
// another one takes the place.
type replica struct {
	number  int
	process *process
	stdin   io.WriteCloser
	state   replicaState
	starts  int
	last    *report       // of the process that runs, or ran last
	drained chan struct{} // closed after its last report
	before  tally         // of the processes before it
}

type replicaState uint8

const (
	running replicaState = iota
	stopped
	killed
	ended // with the run
)

// startWithin is how long a replica may take until it is ready.
const startWithin = 30 * time.Second

// endWithin is how long a replica may take to end on request.
const endWithin = 3 * time.Second

// openFleet starts all replicas and returns when they are ready. They send nothing before
// f.begin.
func openFleet(t task, fail func(error)) (*fleet, error) {
	f := &fleet{task: t, fail: fail}
	for i := range t.Replicas {
		f.replicas = append(f.replicas, &replica{number: i + 1, last: new(report)})
	}
	errs := make(chan error)
	for _, r := range f.replicas {
		go func() { errs <- f.start(r) }()
	}
	var err error
	for range f.replicas {
		if e := <-errs; e != nil {
			err = e
		}
	}
	if err != nil {
		f.end()
		return nil, err
	}
	return f, nil
}

// start starts the process of a replica and returns when it is ready.
func (f *fleet) start(r *replica) error {
	t := f.task
	t.Replica = r.number
	encoded, err := json.Marshal(t)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), taskEnv+"="+string(encoded))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	reports, stdout, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = stdout
	p, err := spawn(cmd)
	stdout.Close()
	if err != nil {
		reports.Close()
		return err
	}
	last, drained, ready := new(report), make(chan struct{}), make(chan struct{})
	f.mu.Lock()
	r.before = r.tally()
	r.process, r.stdin, r.state, r.last, r.drained = p, stdin, running, last, drained
	r.starts++
	f.mu.Unlock()

	go func() {
		defer close(drained)
		defer reports.Close()
		f.keep(last, reports, ready)
	}()
	go f.watch(r, p)
	select {
	case <-ready:
		return nil
	case <-p.done:
		return fmt.Errorf("replica %d: %w", r.number, p.failure())
	case <-time.After(startWithin):
		return fmt.Errorf("replica %d is not ready after %v", r.number, startWithin)
	}
}

// keep keeps the last report of a process, until its end.
func (f *fleet) keep(last *report, reports io.Reader, ready chan<- struct{}) {
	for lines, n := json.NewDecoder(reports), 0; ; n++ {
		var got report
		if lines.Decode(&got) != nil {
			return
		}
		f.mu.Lock()
		*last = got
		f.mu.Unlock()
		if n == 0 {
			close(ready)
		}
	}
}

// watch reports a process that ends and should not.
func (f *fleet) watch(r *replica, p *process) {
	<-p.done
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.process == p && r.state == running {
		r.state = killed
		go f.fail(fmt.Errorf("replica %d: %w", r.number, p.failure()))
	}
}

// begin has all replicas call.
func (f *fleet) begin() {
	for _, r := range f.replicas {
		f.release(r)
	}
}

func (f *fleet) release(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = r.stdin.Write([]byte("\n")) // watch reports one that has exited
}

// kill ends the process of replica n at once.
func (f *fleet) kill(n int) error {
	r := f.replicas[n-1]
	f.mu.Lock()
	r.state = killed
	p, drained := r.process, r.drained
	f.mu.Unlock()
	p.kill()
	<-drained
	return nil
}

// restart gives replica n a new process.
func (f *fleet) restart(n int) error {
	r := f.replicas[n-1]
	if err := f.start(r); err != nil {
		return err
	}
	f.release(r)
	return nil
}

// halt stops replica n.
func (f *fleet) halt(n int) error { return f.signal(n, stopped, (*process).halt) }

// resume continues it.
func (f *fleet) resume(n int) error { return f.signal(n, running, (*process).resume) }

func (f *fleet) signal(n int, state replicaState, send func(*process) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.replicas[n-1]
	r.state = state
	return send(r.process)
}

// end ends all processes and returns when they have exited and their last reports are read.
func (f *fleet) end() {
	var all sync.WaitGroup
	for _, r := range f.replicas {
		f.mu.Lock()
		p, stdin, drained, state := r.process, r.stdin, r.drained, r.state
		r.state = ended
		f.mu.Unlock()
		if p == nil {
			continue
		}
		if state == stopped {
			_ = p.resume() // or it is killed below
		}
		all.Go(func() {
			stdin.Close()
			select {
			case <-p.done:
			case <-time.After(endWithin):
				p.kill()
			}
			<-drained
		})
	}
	all.Wait()
}
