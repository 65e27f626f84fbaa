package lane

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

const (
	// longWait is the shortest wait that is logged.
	longWait = 30 * time.Second
	// longWaitEvery is the shortest time between two lines of log for the same
	// cause in a lane.
	longWaitEvery = time.Minute
)

// dueToLog reports whether a wait with this reason and limit is to be logged now, and remembers that.
func (l *Lane) dueToLog(cause [2]string) bool {
	now := l.Now()
	last, logged := l.longWaits.LoadOrStore(cause, now)
	return !logged || now.Sub(last.(throttle.Instant)) >= longWaitEvery && l.longWaits.CompareAndSwap(cause, last, now)
}

// lineTime returns the least time in which a line of waiting requests passes the limits, if each
// costs one permit. 100 requests before a limit of 20/s with a burst of 20 take 4 s.
func lineTime(limits []throttle.Limit, waiting int) (longest time.Duration) {
	for _, limit := range limits {
		seconds := min(float64(waiting-limit.Capacity())/limit.PerSecond(), (365 * 24 * time.Hour).Seconds())
		longest = max(longest, time.Duration(seconds*float64(time.Second)))
	}
	return longest
}
