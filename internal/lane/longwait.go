package lane

import (
	"sync"
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

// A waitCause says what holds a waiting request.
type waitCause struct {
	reason throttle.Reason
	limit  string // the limit's name
}

// longWaits remember when a lane has logged a long wait, by cause. They are
// safe for concurrent use.
type longWaits struct {
	mu     sync.Mutex
	logged map[waitCause]time.Time
}

// due reports whether a wait with this cause is to be logged now, and remembers
// that it was.
func (l *longWaits) due(cause waitCause, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.logged[cause]; ok && now.Sub(last) < longWaitEvery {
		return false
	}
	if l.logged == nil {
		l.logged = make(map[waitCause]time.Time)
	}
	l.logged[cause] = now
	return true
}

// lineTime returns how long a line of waiting requests takes at least to pass
// the limits, if each costs one permit. 100 requests before a limit of 20/s
// with a burst of 20 take 4 s.
func lineTime(limits []throttle.Limit, waiting int) (longest time.Duration) {
	for _, limit := range limits {
		atHand := limit.Permits // of a window
		if limit.Burst > 0 {
			atHand = limit.Burst
		}
		seconds := min(float64(waiting-atHand)/limit.PerSecond(), (365 * 24 * time.Hour).Seconds())
		longest = max(longest, time.Duration(seconds*float64(time.Second)))
	}
	return longest
}
