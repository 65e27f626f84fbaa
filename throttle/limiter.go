package throttle

import (
	"errors"
	"iter"
	"math"
	"time"
)

// An Instant is nanoseconds since the Unix epoch, carried forward by the
// monotonic clock from a base its owner took. Instants of owners with
// different bases drift apart when the wall clock is stepped.
type Instant int64

// Never is the instant that [Limiter.Take] answers where only news can change
// the answer: a permit that comes back, a run that is fetched. Whoever waits
// for it is woken through [Remote].
const Never Instant = math.MaxInt64

// InstantOf returns t as an Instant, and the last or first one, [Never] the last,
// for a time beyond every instant, after 2262 or before 1678. It reads t's wall
// clock.
func InstantOf(t time.Time) Instant {
	const most = math.MaxInt64 / int64(time.Second)
	switch s := t.Unix(); {
	case s >= most:
		return Never
	case s <= -most:
		return minInstant
	default:
		return Instant(t.UnixNano())
	}
}

// Add returns i + d, and the last or first instant, [Never] the last, where the
// sum is beyond every instant.
func (i Instant) Add(d time.Duration) Instant {
	switch s := i + Instant(d); {
	case d > 0 && s < i:
		return Never
	case d < 0 && s > i:
		return minInstant
	default:
		return s
	}
}

// Sub returns the time from j to i, and the longest or shortest Duration where
// it does not fit one.
func (i Instant) Sub(j Instant) time.Duration {
	switch d := i - j; {
	case i > j && d < 0:
		return math.MaxInt64
	case i < j && d > 0:
		return math.MinInt64
	default:
		return time.Duration(d)
	}
}

// A Request is one caller's wish: Each[i] permits of limit i, in the order the
// limits were given, and N of every limit beyond Each. No permits at all is a
// probe: it spends nothing and passes unless the limiter is paused.
type Request struct {
	N     int
	Each  []int
	Since Instant // in line since; a permit that fell due in this time may be spent late; zero: now
	Until Instant // who asks leaves the line then; zero: it has no deadline. Only a [Remote] reads it.
	ID    uint64  // of the call that it is for, the same at Take and Refund; zero: it has none
}

// Of returns how many permits of limit i the request asks for.
func (r Request) Of(i int) int {
	if i < len(r.Each) {
		return r.Each[i]
	}
	return r.N
}

// A Limiter decides when permits may be spent. It never sleeps and does no I/O
// in the call. Limiters are safe for concurrent use. [Local] makes them,
// [LimiterFunc] makes one of a function, and one that enforces its limits
// together with other processes is a [Remote] too.
type Limiter interface {
	// Take spends what r asks and returns an instant not after now, the one
	// at which the permits were charged; or it spends nothing and returns
	// when to ask again, [Never] when only news can tell.
	//
	// The error is for what can never be granted, [ErrExceedsBurst], or what
	// makes no sense, a negative number of permits.
	Take(now Instant, r Request) (at Instant, err error)

	// Forecast returns a lower bound of the wait, now if nothing is certain. It
	// is a bound for r alone, as if nobody stood in line before it, and never a
	// guess: a request is refused on it.
	Forecast(now Instant, r Request) Forecast

	// Refund takes back permits that were spent but never left: the caller
	// went away just as they were granted. The instant at is the one that Take
	// answered, and what was taken is given back once. A bucket moves back if
	// all that was charged since some instant has come back. Otherwise the
	// permits keep their instant: who stood in line then may still have them,
	// within the tolerance after it, at the same cost, once what went over since
	// is earned back; else they are lost. Windows count them no longer.
	Refund(now, at Instant, r Request)

	// Settle corrects an estimate: the request r, charged at the instant at,
	// really cost actual. Overspend is always charged, now. Underspend is given
	// back as far as the limiter would now hold no more than if actual had been
	// charged at the departure; what can no longer be told is dropped, such as,
	// in a limiter of one bucket, what was charged before the first Settle that
	// was no overspend.
	Settle(now, at Instant, r, actual Request)

	// Reconcile believes the vendor. A refusal cuts the rate by [Cut]; calls
	// served afterwards restore it step by step. A refusal with a time cuts it
	// only if calls were served since the last cut: if nobody is served, the
	// rate is not the reason. A refusal with a time pauses too: permits dated
	// before its end are void, saved burst with them, and from then on departures
	// are spaced at the interval of limits of up to a minute; longer limits are
	// neither spaced nor cut.
	Reconcile(now Instant, f Fact)

	// Tune replaces the limits while running. What was used under the old
	// limits counts as used under the new ones, in permits and fractions of one;
	// nothing is granted for the change itself, and what was at hand stays so: a
	// larger burst is earned, and what a larger or another window has more at
	// hand is let out evenly. An instant before the change, read out of order,
	// waits for it. The error is for limits that do not validate, and matches
	// [errors.ErrUnsupported] if limits cannot be replaced; the old ones stay.
	Tune(now Instant, limits ...Limit) error

	// Tolerance returns the permit tolerance: how long after its instant a
	// permit may still be spent, as the function [Tolerance] has it of limits.
	// Zero or less means that of no limits.
	Tolerance() time.Duration

	// State returns the state at an instant. It spends nothing.
	State(now Instant) State
}

// A Remote is a [Limiter] that enforces its limits together with others, such as
// other processes, so that it learns from elsewhere. It is found by type
// assertion.
type Remote interface {
	// Notify has wake called, from any goroutine, whenever what Take answered no
	// longer holds: permits came, a pause or other limits were learned from
	// elsewhere. The limiter holds no lock then, and does not call it from inside
	// one of its own methods: the queue that calls those holds its lock. The last
	// wake registered is the one called.
	Notify(wake func())

	// Fetch is told of the n requests that stand in line, first to last, and may
	// start one call for them in the background; and once, with none, when nobody
	// stands there any more. The sequence is valid during the call only, and
	// costs what is looked at of it.
	Fetch(now Instant, n int, line iter.Seq[Request])

	// Close ends what the limiter does in the background and gives back what it
	// holds. It does not wait for that. Nothing is granted afterwards.
	Close() error
}

// ErrExceedsBurst is matched by the error for a request of more permits than
// its limit ever grants at once.
var ErrExceedsBurst = errors.New("cost exceeds burst")

// A Forecast tells why r must wait and how long at least.
type Forecast struct {
	At     Instant // r cannot go before it; not after now: r could go now; Never: Take returns an error
	Limit  string  // the name of the limit that asks for it; "" where none does
	Reason Reason  // what r would wait for
}

// A Reason is what a request waits for, in the words of the telemetry.
type Reason string

// The reasons of a wait.
const (
	ReasonRate        Reason = "rate"        // permits of a limit
	ReasonPause       Reason = "pause"       // the end of a pause that the vendor asked for
	ReasonConcurrency Reason = "concurrency" // calls in flight to end
	ReasonStore       Reason = "store"       // the store to answer
)

// A Fact is the vendor's word about one answered call, in the limiter's terms.
type Fact struct {
	Departed Instant // when the call left; a refusal of a call older than the last cut is old news; zero: no call, only a pause
	Refused  bool    // refused for want of quota; false: served
	Until    Instant // of a refusal: nothing departs before it; zero: no time was told

	// Resumed is an operator's word and no vendor's: a pause that runs ends now,
	// and departures are spaced from now on as they would have been from its
	// end. The other fields mean nothing then. A store tells it the other
	// processes that share the limits.
	Resumed bool
}

// Slows reports whether the fact cuts the rate: a call was refused. A pause that
// no call was told cuts nothing.
func (f Fact) Slows() bool {
	return f.Refused && !f.Resumed && (f.Until == 0 || f.Departed != 0)
}

// A State is a limiter's state at one instant.
type State struct {
	Paused time.Duration // until the pause ends; zero: it is not paused
	Whole  bool          // as good as new: it could be forgotten and made again
	Cut    float64       // share in force of the configured rate of limits of up to a minute; 1 where nothing was cut
	Limits []LimitState  // in the order the limits were given
	Store  *StoreState   // nil: the limits are enforced in this process alone
}

// A StoreState tells how a limiter fares with the store through which it shares
// its limits with other processes.
type StoreState struct {
	Lost     bool   // the store does not answer, and the policy for its loss holds
	Cause    string // of the loss, one word of ours such as "timeout"; "" where it is not lost
	Replicas int    // processes that shared the limits lately; zero: never told
	Differs  bool   // another process claims stricter limits, and those hold
	Calls    uint64 // calls to the store
	Failures uint64 // of those, how many brought no answer, or an error
	Unknown  uint64 // permits asked for in calls without an answer: they may be lost
	Void     uint64 // permits that nobody took in time
	Local    uint64 // permits spent under the policy for a loss
}

// A LimitState is the state of one limit at one instant.
type LimitState struct {
	Limit       Limit
	Headroom    float64       // permits that could be spent at once; negative: debt
	Next        time.Duration // until one permit could be spent; zero: at once
	Utilization float64       // share of the burst or of the window's permits that is used, 0 to 1; above it in debt
}
