package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the child when this program exits.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
