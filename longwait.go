package weir

import (
	"sync"
	"time"

	"github.com/weirgo/weir/internal/readable"
	"github.com/weirgo/weir/shaping"
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

// tellLong logs a wait that will be long: otherwise nobody sees a caller whom a
// day's limit holds for an hour.
func (l *lane) tellLong(w shaping.Wait) {
	limits := *l.limits.Load()
	wait := max(w.Planned, lineTime(limits, w.Waiting))
	if wait <= longWait || !l.longWaits.due(waitCause{w.Reason, w.Limit}, time.Now()) {
		return
	}
	with := []any{"lane", l.key, "wait", readable.Wait(wait), "reason", string(w.Reason), "waiting", w.Waiting + 1}
	if w.Limit != "" {
		with = append(with, "limit", labelOf(limits, w.Limit))
	}
	if l.sub != nil {
		with = append(with, "alone", l.sub.part)
	}
	l.home.transport.logger().Warn("weir: requests wait for long", with...)
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

// labelOf returns what a user calls the limit that has the name.
func labelOf(limits []throttle.Limit, name string) string {
	for _, limit := range limits {
		if limit.Name == name {
			return limit.Label()
		}
	}
	return name // the limits have changed meanwhile, or there is none
}
