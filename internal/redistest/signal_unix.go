//go:build unix

package redistest

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// halt returns when the child has stopped, which may be after the signal was sent.
func halt(tb testing.TB, c *child) {
	tb.Helper()
	signal(tb, c, syscall.SIGSTOP)
	if err := await("the child to stop", func() (bool, error) { return stopped(c.pid()), nil }); err != nil {
		tb.Errorf("redistest: %v", err)
	}
}

func resume(tb testing.TB, c *child) {
	tb.Helper()
	signal(tb, c, syscall.SIGCONT)
}

func signal(tb testing.TB, c *child, sig syscall.Signal) {
	tb.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		tb.Errorf("redistest: %v: %v", sig, err)
	}
}

// stopped reads the state that follows the name in parentheses; without such a file it trusts the
// signal. See proc(5), /proc/pid/stat.
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T"))
}
