package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// logName is the file, in the child's directory, with what it writes.
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

// run keeps the thread that starts the child until the child has ended: to
// the kernel the parent that it shall not outlive is that thread.
func (c *child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.done)
	err := c.cmd.Start()
	started <- err
	if err == nil {
		_ = c.cmd.Wait() // a killed child is no news
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

// kill returns when the child is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may be gone already
	<-c.done
}

// failure says that the child has ended, if it has.
func (c *child) failure() error {
	if !c.ended() {
		return nil
	}
	return fmt.Errorf("%s: %s", filepath.Base(c.cmd.Path), c.cmd.ProcessState)
}
