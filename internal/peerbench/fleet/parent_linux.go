package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the child when this program is killed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
