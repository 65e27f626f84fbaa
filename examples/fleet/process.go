package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
)

// A process is a child of this program.
type process struct {
	cmd    *exec.Cmd
	stderr tail
	done   chan struct{} // closed when it has ended
}

// spawn starts a child that does not outlive this program: some kernels end the child, and
// elsewhere a replica detects the end of its stdin.
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	cmd.Stderr = &p.stderr
	dieWithParent(cmd)
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run holds the thread that starts the child until the child has ended: for the kernel that thread
// is the parent.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	err := p.cmd.Start()
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // the state has the outcome
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill returns when the child has exited.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have exited already
	<-p.done
}

// failure returns how a child ended.
func (p *process) failure() error {
	return fmt.Errorf("%v %s", p.cmd.ProcessState, p.stderr.String())
}

// A tail keeps the end of the text written to it.
type tail struct {
	mu  sync.Mutex
	end []byte
}

func (t *tail) Write(b []byte) (int, error) {
	const most = 4096
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, b...)
	t.end = t.end[max(0, len(t.end)-most):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.end))
}
