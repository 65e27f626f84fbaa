package distributed

import (
	"flag"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle/limitertest"
)

var histories = flag.Int("histories", 150, "random histories of the script for each algorithm")

// The script decides as every limiter does.
func TestScriptDecisions(t *testing.T) {
	b := newBench(t)
	limitertest.Suite{Make: b.limiter, Histories: *histories, Tick: time.Microsecond}.Decisions(t)
}
