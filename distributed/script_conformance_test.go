package distributed

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle/limitertest"
)

var histories = flag.Int("histories", full(150, 40), "random histories of the script for each algorithm")

// full returns the first number if CI is set, and otherwise the second, which is
// what a change has time for.
func full(all, few int) int {
	if os.Getenv("CI") != "" {
		return all
	}
	return few
}

// The script decides as every limiter does.
func TestScriptDecisions(t *testing.T) {
	b := newBench(t)
	limitertest.Suite{Make: b.limiter, Histories: *histories, Tick: time.Microsecond}.Decisions(t)
}
