//go:build !unix

package redistest

import "testing"

func halt(tb testing.TB, _ *child)   { tb.Helper(); tb.Skip("redistest: no SIGSTOP here") }
func resume(tb testing.TB, _ *child) { tb.Helper(); tb.Skip("redistest: no SIGCONT here") }
