package redistest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the child when the test is killed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
