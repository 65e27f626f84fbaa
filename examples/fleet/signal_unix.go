//go:build unix

package main

import "syscall"

// canHalt reports whether a process can be stopped for a while.
const canHalt = true

func (p *process) halt() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
