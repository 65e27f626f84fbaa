package script

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle/limitertest"
)

var histories = flag.Int("histories", 0, "random histories of the script for each algorithm; 0: 60 if CI is set, 40 otherwise, 5 with -short")

// lives returns how many random histories to run for each algorithm.
func lives() int {
	switch {
	case *histories > 0:
		return *histories
	case testing.Short():
		return 5
	default:
		return 40 // quick enough for each change
	}
}

// The script decides as every limiter does, whether usual calls are sent in short or spelled out.
func TestScriptDecisions(t *testing.T) {
	for _, spelled := range []bool{false, true} {
		t.Run(fmt.Sprintf("spelled=%v", spelled), func(t *testing.T) {
			b := newBench(t)
			b.spelled = spelled
			b.persist()
			limitertest.Suite{Make: b.limiter, Histories: (lives() + 1) / 2, Tick: time.Microsecond}.Decisions(t)
		})
	}
}
