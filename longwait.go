package weir

import (
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

const (
	// longWait is the shortest wait that an operator is told of.
	longWait = 30 * time.Second
	// longWaitEvery is how often a lane tells of the same cause.
	longWaitEvery = time.Minute
)

// A waitCause is what holds a wait.
type waitCause struct {
	reason throttle.Reason
	limit  string // its name
}

// longWaits are the causes of long waits that a lane has told of.
type longWaits struct {
	mu   sync.Mutex
	told map[waitCause]time.Time
}

// due reports whether the cause is to be told of again.
func (l *longWaits) due(cause waitCause, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.told[cause]; ok && now.Sub(last) < longWaitEvery {
		return false
	}
	if l.told == nil {
		l.told = make(map[waitCause]time.Time)
	}
	l.told[cause] = now
	return true
}

// lineTime returns how long a line of so many takes at least to pass the limits,
// each request at a cost of one: 100 before a limit of 20/s burst 20 take 4 s.
func lineTime(limits []throttle.Limit, waiting int) (longest time.Duration) {
	for _, limit := range limits {
		atHand := limit.Permits // of a window
		if limit.Burst > 0 {
			atHand = limit.Burst
		}
		interval := limit.Per.Seconds() / float64(limit.Permits)
		seconds := min(interval*float64(waiting-atHand), (365 * 24 * time.Hour).Seconds())
		longest = max(longest, time.Duration(seconds*float64(time.Second)))
	}
	return longest
}
