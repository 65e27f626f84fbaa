//go:build unix

package distributed_test

import (
	"os"
	"syscall"
	"testing"
)

func halt(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Errorf("SIGSTOP: %v", err)
	}
}

func resume(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Errorf("SIGCONT: %v", err)
	}
}
