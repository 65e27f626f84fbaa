//go:build !unix

package distributed_test

import (
	"os"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/needs"
)

func halt(t *testing.T, _ *os.Process)   { needs.Lacks(t, "SIGSTOP") }
func resume(t *testing.T, _ *os.Process) { needs.Lacks(t, "SIGSTOP") }

func processorTime() time.Duration { return 0 }
