//go:build !unix

package redistest

import (
	"testing"

	"github.com/weirgo/weir/internal/needs"
)

func halt(tb testing.TB, _ *child)   { tb.Helper(); needs.Lacks(tb, "SIGSTOP") }
func resume(tb testing.TB, _ *child) { tb.Helper(); needs.Lacks(tb, "SIGCONT") }
