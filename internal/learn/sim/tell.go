package sim

import (
	"math"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// A Style is what a simulated vendor tells in its answers. It is written as
// the facts that package headers would read of them.
type Style uint8

// The styles.
const (
	Bare        Style = iota // a 429 and nothing else
	RetrySecs                // Retry-After in whole seconds
	RetryMillis              // Retry-After-Ms
	Epoch                    // X-RateLimit with an epoch, of the tightest limit, and Retry-After
	Delta                    // the same with seconds from now
	IETF                     // RateLimit and RateLimit-Policy: all limits, named, with windows
	Coarse                   // "0 left, 1 s" on every answer, and Retry-After
	ToFull                   // remaining and the exact time until whole, and Retry-After-Ms
	Rolling                  // the reset is always a whole window ahead
	LiarLow                  // remaining 0, reset in 60 s on every success
	LiarHigh                 // remaining 5,000 of 5,000 always
	NoReset                  // limit and remaining alone
	Gateway                  // whole permits left, and at least one second until whole, of the tightest, and Retry-After
	Policy                   // IETF, a bucket told as its rate: so many in one second
	Garbage                  // a hostile value in each field
	styles
)

var styleNames = [...]string{
	"bare", "ra-s", "ra-ms", "x-epoch", "x-delta", "ietf", "coarse",
	"to-full", "rolling", "liar-low", "liar-high", "no-reset", "gateway", "policy", "garbage",
}

func (s Style) String() string { return styleNames[s] }

// secs rounds up to whole seconds.
func secs(d time.Duration) time.Duration { return (d + time.Second - 1) / time.Second * time.Second }

// tell fills in what the answer says: the told time of a refusal from now, and
// the quotas. now is the vendor's.
func (d *door) tell(s Style, now int64, ok bool, q []learn.Quota) (time.Duration, []learn.Quota) {
	q = q[:0]
	wait := time.Duration(0)
	if !ok {
		wait = d.wait(now)
	}
	switch s {
	case Bare:
		return 0, q
	case RetrySecs:
		return secs(wait), q
	case RetryMillis:
		return (wait + time.Millisecond - 1) / time.Millisecond * time.Millisecond, q
	case LiarLow:
		return secs(wait), append(q, learn.Quota{Limit: 1000, HasLimit: true, HasRemaining: true, Reset: time.Minute, HasReset: true})
	case LiarHigh:
		return secs(wait), append(q, learn.Quota{Limit: 5000, HasLimit: true, Remaining: 5000, HasRemaining: true, Reset: time.Minute, HasReset: true})
	case IETF, Policy:
		for _, m := range d.meters {
			q = append(q, d.quota(m, s, now))
			q[len(q)-1].Name = ruleNames[len(q)-1]
		}
		return secs(wait), q
	}
	if m := d.tightest(now); m != nil {
		q = append(q, d.quota(m, s, now))
	}
	if s == ToFull {
		return wait, q
	}
	return secs(wait), q
}

var ruleNames = [...]string{"a", "b", "c", "d"}

func (d *door) tightest(now int64) *meter {
	var least *meter
	for _, m := range d.meters {
		switch {
		case least == nil,
			m.wait(now) > least.wait(now),
			m.wait(now) == least.wait(now) && m.left(now) < least.left(now):
			least = m
		}
	}
	return least
}

func (d *door) quota(m *meter, s Style, now int64) learn.Quota {
	q := learn.Quota{
		Limit: float64(m.quota()), HasLimit: true,
		Remaining: float64(max(0, m.left(now))), HasRemaining: true,
		Reset: m.whole(now), HasReset: m.Kind != Flight,
	}
	if m.Kind == Flight && (s == IETF || s == Policy) {
		q.Unit = "concurrent-requests"
	}
	switch s {
	case Epoch: // the client subtracts the Date of the same answer, in whole seconds
		end := now + int64(q.Reset)
		q.Reset = secs(time.Duration(end)) - time.Duration(now)/time.Second*time.Second
	case Delta:
		q.Reset = secs(q.Reset)
	case IETF:
		q.Reset = secs(q.Reset)
		if m.Kind != Bucket && m.Kind != Flight {
			q.Window, q.HasWindow = m.Per, true
		}
	case Policy:
		q.Reset = secs(q.Reset)
		if m.Kind == Bucket {
			q.Limit, q.Window, q.HasWindow = math.Round(m.PerSecond()), time.Second, true
		}
	case Gateway:
		q.Remaining = math.Floor(q.Remaining)
		q.Reset = max(secs(q.Reset), time.Second)
	case Coarse:
		q.Remaining, q.Reset = 0, time.Second
	case Rolling:
		q.Reset = m.Per
	case NoReset:
		q.Reset, q.HasReset = 0, false
	}
	return q
}
