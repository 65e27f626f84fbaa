package needs

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
)

// A verdict records how a test would have ended.
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

func lacking(t *testing.T, programs ...string) string {
	v := &verdict{TB: t}
	for _, name := range programs {
		done := make(chan struct{})
		go func() {
			defer close(done)
			Program(v, name)
		}()
		<-done
	}
	return v.text
}

func TestAbsentProgramLeavesTestOutButInCI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CI", "true")
	if got, want := lacking(t, "redis-server"), "FAIL: there is no redis-server, and CI is set"; got != want {
		t.Errorf("with CI: %q, want %q", got, want)
	}
	t.Setenv("CI", "")
	if got, want := lacking(t, "redis-server"), "SKIP: there is no redis-server"; got != want {
		t.Errorf("without CI: %q, want %q", got, want)
	}
}

func TestWhatWasLeftOutIsReportedInOneLine(t *testing.T) {
	leftOut = map[string]int{}
	defer func() { leftOut = map[string]int{} }()
	var line bytes.Buffer
	if tell(&line); line.Len() > 0 {
		t.Errorf("printed %q, and nothing was left out", line.String())
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CI", "")
	lacking(t, "redis-server", "luacheck", "redis-server")
	tell(&line)
	if got, want := line.String(), "tests left out: 1 for want of luacheck, 2 for want of redis-server\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
