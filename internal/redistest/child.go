package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// logName is the file in the child's directory with its output.
const logName = "log"

// A child is a process that we started.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// spawn starts the program in the directory.
func spawn(program, dir string, args []string) (*child, error) {
	out, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(program, args...), done: make(chan struct{})}
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = dir, out, out
	dieWithParent(c.cmd)
	started := make(chan error, 1)
	go c.run(started)
	err = <-started
	_ = out.Close() // the child has its own
	return c, err
}

// run holds the thread that starts the child until the child has ended. For the kernel that thread
// is the parent, and the child dies with it.
func (c *child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.done)
	err := c.cmd.Start()
	started <- err
	if err == nil {
		_ = c.cmd.Wait() // a killed child is expected
	}
}

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// kill kills the child and returns when it has exited.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have exited already
	<-c.done
}

// failure returns an error if the child has ended.
func (c *child) failure() error {
	if !c.ended() {
		return nil
	}
	return fmt.Errorf("%s: %s", filepath.Base(c.cmd.Path), c.cmd.ProcessState)
}
