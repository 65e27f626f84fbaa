package distributed

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

// ErrUnavailable is matched by the error with which [FailClosed] refuses.
var ErrUnavailable = errors.New("shared store is unavailable")

// An outage is what a limiter does while the store does not answer.
type outage struct {
	lost     bool
	cause    string
	replicas int              // that the gate divides by
	gate     throttle.Limiter // nil: there was no loss yet. It lives on: losses in a row are no new starts.
	spent    []int64          // of each limit, through the gate, not told to the store yet
}

// lose begins an outage.
func (l *limiter) lose(cause string) {
	l.out.cause = cause
	if l.out.lost {
		return
	}
	l.out.lost = true
	if l.store.set.onLoss != FailClosed {
		l.regate()
	}
	if l.out.gate != nil && l.paused > 0 {
		l.out.gate.Reconcile(l.clock.now(), throttle.Fact{Refused: true, Until: l.paused})
	}
}

// find ends an outage.
func (l *limiter) find() {
	l.out.lost, l.out.cause = false, ""
	l.failures = 0
}

// regate makes or tunes the gate to the limits and the replicas that were alive
// last.
func (l *limiter) regate() {
	replicas := l.replicas()
	limits := l.limits
	if l.store.set.onLoss == FailLocal {
		limits = shareOf(l.limits, l.store.set.share, replicas)
	}
	switch {
	case l.out.gate == nil:
		gate, err := throttle.Local{}.Limiter("", limits...)
		if err != nil {
			return // they were resolved before
		}
		l.out.gate = gate
		if l.store.set.onLoss == FailOpen {
			// What was saved, the fleet has spent.
			now := l.clock.now()
			gate.Reconcile(now, throttle.Fact{Refused: true, Until: now})
		}
	case l.out.replicas != replicas || l.retuned:
		_ = l.out.gate.Tune(l.clock.now(), limits...) // likewise
	}
	l.out.replicas, l.retuned = replicas, false
}

func (l *limiter) replicas() int {
	switch {
	case l.alive > 0:
		return l.alive
	case l.store.set.replicas > 0:
		return l.store.set.replicas
	default:
		return DefaultReplicas
	}
}

// shareOf returns the limits of one replica of those that cannot see each
// other: no burst, and evenly spaced.
func shareOf(limits []throttle.Limit, share float64, replicas int) []throttle.Limit {
	out := make([]throttle.Limit, len(limits))
	for i, l := range limits {
		per := float64(l.Per) * float64(replicas) / share
		permits := float64(l.Permits)
		// Fewer permits where the time would be too long for a Duration.
		if scale := per / float64(math.MaxInt64/2); scale > 1 {
			per, permits = per/scale, max(permits/scale, 1)
		}
		out[i] = throttle.LeakyBucket(int(permits), time.Duration(per))
		out[i].Unit, out[i].Name = l.Unit, l.Name
	}
	return out
}

// takeLocal is Take while the store does not answer.
func (l *limiter) takeLocal(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	if l.store.set.onLoss == FailClosed || l.out.gate == nil {
		return 0, fmt.Errorf("distributed: lane %q: %w: %s", l.lane, ErrUnavailable, l.out.cause)
	}
	// The gate's limits are slower, so that it dates permits further back for time
	// in line than the queue would still let anybody have them.
	r.Since = max(r.Since, now.Add(-l.tolerance/2))
	at, err := l.out.gate.Take(now, r)
	if err != nil || at > now {
		return at, err
	}
	c := l.costs(&r)
	for i := range l.out.spent {
		l.out.spent[i] += c.of(i)
	}
	l.stats.Local++
	return local(at), nil
}
