package sim

import (
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// A Style is a simulated vendor's reports in its answers, as independent choices. It is written as
// the facts that package headers would read. The zero Style is a bare 429.
type Style struct {
	Retry  Retry  // of a refusal
	Quotas Quotas // whose remaining permits are in each answer
	Limit  Limit
	Reset  Reset
	Round  Round // of Reset
	Lie    Lie   // reported instead
	Flaw   Flaw  // of some of the answers
}

// A Retry is how a refusal reports when to come back.
type Retry uint8

// The kinds of Retry-After.
const (
	NoRetry Retry = iota
	Seconds       // whole seconds, rounded up
	Millis        // whole milliseconds, rounded up
)

// Quotas are the rules that an answer reports.
type Quotas uint8

// The rules that are reported.
const (
	NoQuotas Quotas = iota
	Tightest        // one, without a name
	Named           // all rules
	Policies        // all rules, with the lengths of their windows
)

// A Limit is the content of the limit's field.
type Limit uint8

// The meanings of a limit field.
const (
	Most    Limit = iota // the permits at once, or in a window
	PerSec               // a bucket's permits in a second; with a window of a second if it is named
	NoLimit              // no such field
)

// A Reset is the content of the reset's field.
type Reset uint8

// The meanings of a reset field.
const (
	Whole   Reset = iota // until a bucket is full, or a window ends
	Next                 // until one more is left
	Rolling              // always a whole window
	NoReset              // no such field
)

// A Round is how the time of a reset is rounded.
type Round uint8

// The roundings.
const (
	Exact   Round = iota
	Secs          // up to whole seconds
	OneSec        // up to whole seconds, at least one
	InEpoch       // an epoch in whole seconds, from which the client subtracts the Date
)

// A Lie is reported whatever is left.
type Lie uint8

// The lies.
const (
	Truth   Lie = iota
	Drained     // 0 left, for a second
	AllGone     // 0 left, for a minute
	AllLeft     // 5,000 of 5,000 left
	Odd         // a hostile value in each field
)

// A Flaw is an error in the quotas of some answers.
type Flaw uint8

// The flaws.
const (
	NoFlaw       Flaw = iota
	TwoNodes          // one of two nodes answers: it reports up to a tenth more than is left, or less
	Stale             // one answer in ten reports what was left a second ago
	Missing           // one answer in ten reports nothing
	NotOnRefusal      // a refusal reports nothing
)

// The styles that have a name.
var (
	Bare        = Style{}
	RetrySecs   = Style{Retry: Seconds}
	RetryMillis = Style{Retry: Millis}
	Epoch       = Style{Retry: Seconds, Quotas: Tightest, Round: InEpoch}
	Delta       = Style{Retry: Seconds, Quotas: Tightest, Round: Secs}
	IETF        = Style{Retry: Seconds, Quotas: Policies, Round: Secs}
	Coarse      = Style{Retry: Seconds, Quotas: Tightest, Lie: Drained}
	ToFull      = Style{Retry: Millis, Quotas: Tightest}
	AllAhead    = Style{Retry: Seconds, Quotas: Tightest, Reset: Rolling}
	LiarLow     = Style{Retry: Seconds, Lie: AllGone}
	LiarHigh    = Style{Retry: Seconds, Lie: AllLeft}
	Resetless   = Style{Retry: Seconds, Quotas: Tightest, Reset: NoReset}
	Gateway     = Style{Retry: Seconds, Quotas: Tightest, Round: OneSec}
	Policy      = Style{Retry: Seconds, Quotas: Named, Limit: PerSec, Round: Secs}
	Garbage     = Style{Retry: Seconds, Lie: Odd}
)

// styles are the styles of random vendors.
var styles = [...]Style{
	Bare, RetrySecs, RetryMillis, Epoch, Delta, IETF, Coarse, ToFull,
	AllAhead, LiarLow, LiarHigh, Resetless, Gateway, Policy, Garbage,
}

// String names the choices that are not zero.
func (s Style) String() string {
	words := []string{
		[...]string{"bare", "ra-s", "ra-ms"}[s.Retry],
		[...]string{"", "tightest", "named", "policies"}[s.Quotas],
		[...]string{"", "limit-rate", "no-limit"}[s.Limit],
		[...]string{"", "next", "rolling", "no-reset"}[s.Reset],
		[...]string{"", "secs", "1-sec", "epoch"}[s.Round],
		[...]string{"", "drained", "low", "high", "odd"}[s.Lie],
		[...]string{"", "two-nodes", "stale", "missing", "not-on-refusal"}[s.Flaw],
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), "/")
}

// secs rounds up to whole seconds.
func secs(d time.Duration) time.Duration { return (d + time.Second - 1) / time.Second * time.Second }

// report fills in the answer's reports: the time of a refusal from now, and the quotas. now is the
// vendor's.
func (d *door) report(s Style, now int64, ok bool, q []learn.Quota) (time.Duration, []learn.Quota) {
	wait := time.Duration(0)
	if !ok {
		wait = d.wait(now)
	}
	switch s.Retry {
	case NoRetry:
		wait = 0
	case Seconds:
		wait = secs(wait)
	case Millis:
		wait = (wait + time.Millisecond - 1) / time.Millisecond * time.Millisecond
	}
	return wait, d.quotas(s, now, q[:0])
}

// quotas appends the vendor's reports of its rules.
func (d *door) quotas(s Style, now int64, q []learn.Quota) []learn.Quota {
	switch s.Lie {
	case AllGone:
		return append(q, learn.Quota{Limit: 1000, HasLimit: true, HasRemaining: true, Reset: time.Minute, HasReset: true})
	case AllLeft:
		return append(q, learn.Quota{Limit: 5000, HasLimit: true, Remaining: 5000, HasRemaining: true, Reset: time.Minute, HasReset: true})
	}
	switch s.Quotas {
	case Tightest:
		if m := d.tightest(now); m != nil {
			q = append(q, d.quota(m, s, now))
		}
	case Named, Policies:
		for i, m := range d.meters {
			q = append(q, d.quota(m, s, now))
			q[i].Name = ruleNames[i]
		}
	}
	return q
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
	q := learn.Quota{Remaining: float64(max(0, m.left(now))), HasRemaining: true, HasReset: m.Kind != Flight}
	named := s.Quotas == Named || s.Quotas == Policies
	if m.Kind == Flight && named {
		q.Unit = "concurrent-requests"
	}
	if s.Quotas == Policies && m.Kind != Bucket && m.Kind != Flight {
		q.Window, q.HasWindow = m.Per, true
	}
	if s.Limit != NoLimit {
		q.Limit, q.HasLimit = float64(m.quota()), true
	}
	if s.Limit == PerSec && m.Kind == Bucket {
		q.Limit = math.Round(m.PerSecond())
		if named {
			q.Window, q.HasWindow = time.Second, true
		}
	}
	switch s.Reset {
	case Whole:
		q.Reset = m.whole(now)
	case Next:
		q.Reset = m.next(now)
	case Rolling:
		q.Reset = m.Per
	case NoReset:
		q.HasReset = false
		return q
	}
	switch s.Round {
	case Secs:
		q.Reset = secs(q.Reset)
	case OneSec:
		q.Reset = max(secs(q.Reset), time.Second)
	case InEpoch:
		end := now + int64(q.Reset)
		q.Reset = secs(time.Duration(end)) - time.Duration(now)/time.Second*time.Second
	}
	if s.Lie == Drained {
		q.Remaining, q.Reset = 0, time.Second
	}
	return q
}

const (
	// apart is the largest share by which a node's answer is off.
	apart = 0.1
	// flawed is the share of answers that are stale or missing.
	flawed = 0.1
	// staleBy is the age of a stale answer.
	staleBy = time.Second
)

// A history is the vendor's reports in the last staleBy, first to last.
type history []reported

type reported struct {
	at     int64
	quotas []learn.Quota
}

// old adds the current report, and returns the one of staleBy ago. An epoch stays the same instant,
// and seconds count from now.
func (h *history) old(now int64, epoch bool, q []learn.Quota) []learn.Quota {
	*h = append(*h, reported{now, append([]learn.Quota(nil), q...)})
	for len(*h) > 1 && (*h)[1].at <= now-int64(staleBy) {
		*h = (*h)[1:]
	}
	was := append([]learn.Quota(nil), (*h)[0].quotas...)
	if epoch {
		for i := range was {
			was[i].Reset -= time.Duration(now - (*h)[0].at)
		}
	}
	return was
}

// spoil applies the style's flaw to the quotas of an answer.
func (s Style) spoil(rng *rand.Rand, h *history, now int64, ok bool, q []learn.Quota) []learn.Quota {
	switch s.Flaw {
	case TwoNodes:
		off := apart * rng.Float64()
		if rng.IntN(2) == 0 {
			off = -off
		}
		for i := range q {
			q[i].Remaining = math.Round(q[i].Remaining * (1 + off))
		}
	case Stale:
		if was := h.old(now, s.Round == InEpoch, q); rng.Float64() < flawed {
			q = append(q[:0], was...)
		}
	case Missing:
		if rng.Float64() < flawed {
			q = q[:0]
		}
	case NotOnRefusal:
		if !ok {
			q = q[:0]
		}
	}
	return q
}
