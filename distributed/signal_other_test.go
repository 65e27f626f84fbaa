//go:build !unix

package distributed_test

import (
	"os"
	"testing"
)

func halt(t *testing.T, _ *os.Process)   { t.Skip("no process is halted here") }
func resume(t *testing.T, _ *os.Process) { t.Skip("no process is halted here") }
