package redistest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/weirgo/weir/internal/redistest"
)

// A verdict keeps how a test would have ended.
type verdict struct {
	testing.TB
	text string
}

func (v *verdict) Fatalf(format string, args ...any) { v.end("FAIL: "+format, args) }
func (v *verdict) Skipf(format string, args ...any)  { v.end("SKIP: "+format, args) }

func (v *verdict) end(format string, args []any) {
	v.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestAbsentServerSkipsButInCI(t *testing.T) {
	for _, test := range []struct{ ci, require, want string }{
		{"", "", "SKIP: redistest: exec"},
		{"true", "", "FAIL: redistest: CI is set: exec"},
		{"", "1", "FAIL: redistest: WEIR_REQUIRE_REDIS is set: exec"},
	} {
		t.Setenv("PATH", t.TempDir())
		t.Setenv("CI", test.ci)
		t.Setenv("WEIR_REQUIRE_REDIS", test.require)
		v := &verdict{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			redistest.Start(v)
		}()
		if <-done; !strings.HasPrefix(v.text, test.want) {
			t.Errorf("with CI=%q, WEIR_REQUIRE_REDIS=%q: %q, want %s ...", test.ci, test.require, v.text, test.want)
		}
	}
}
