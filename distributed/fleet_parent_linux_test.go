package distributed_test

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the process when the test is killed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
