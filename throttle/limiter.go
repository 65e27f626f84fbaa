package throttle

import (
	"errors"
	"iter"
	"math"
	"time"
)

// An Instant is a time in nanoseconds since the Unix epoch. Its owner reads the
// wall clock once, and from there on follows the monotonic clock. So the
// instants of owners that began at different times drift apart if the wall
// clock is stepped.
type Instant int64

// Never is the instant of the [Grant] if only an event can change it: a permit
// that comes back, or a run that is fetched. A caller that waits for it is woken
// through [Remote].
const Never Instant = math.MaxInt64

// InstantOf returns t as an Instant. It reads t's wall clock. For a time after April 2262
// it returns [Never], and for one before September 1677 the first instant.
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

// Add returns i + d. If the sum is beyond every instant, it returns [Never], or
// the first instant.
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

// Sub returns the time from j to i. If that does not fit a Duration, it returns
// the longest or the shortest one.
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

// A Request is one caller's wish: Each[i] permits of limit i, in the order in
// which the limits were given, and N permits of every limit beyond Each. A
// request without permits is a probe: it spends nothing, and passes unless the
// limiter is paused.
//
//	Request{N: 1}                 one permit of every limit
//	Request{Each: []int{1, 600}}  one permit of the first limit, 600 of the second
type Request struct {
	N     int
	Each  []int
	Since Instant // when the caller joined the line; permits that fell due since may be spent late; zero: now
	Until Instant // when the caller leaves the line; zero: it has no deadline; only a [Remote] reads it
	ID    uint64  // of the call that the permits are for, the same for Take and Refund; zero: it has none

	// Urgent requests may spend what limits reserve ([Limit].Reserve). If false, that is left.
	Urgent bool
}

// Of returns how many permits of limit i the request asks for.
func (r Request) Of(i int) int {
	if i < len(r.Each) {
		return r.Each[i]
	}
	return r.N
}

// A Grant is the answer of [Limiter.Take].
type Grant struct {
	At  Instant // when the permits were charged; or, if that is after now, when to ask again
	Ref Ref     // of permits that were charged
}

// A Ref is how a limiter that shares its limits through a store finds permits again.
// The zero value is that of permits which were charged in this process.
type Ref struct {
	Instant int64 // of the permits by the store's clock, in microseconds since the Unix epoch
	Ordinal int64 // of the departure, counted by the store from 1; zero: the store does not count them
}

// A Limiter decides when permits may be spent. Its methods never sleep and do
// no I/O. They are safe for concurrent use. [Local] makes limiters, and
// [LimiterFunc] makes one of a function. A limiter that enforces its limits
// together with other processes is also a [Remote].
//
// All instants given to one limiter must come from the same clock.
type Limiter interface {
	// Take spends what r asks for and returns a grant whose instant is not after now.
	// Or it spends nothing, and the grant's instant is the later one at which to ask
	// again; that is [Never] if it is not known.
	//
	// The error says that r can never be granted ([ErrExceedsBurst]), or that it
	// asks for a negative number of permits.
	Take(now Instant, r Request) (Grant, error)

	// Forecast returns a lower bound of r's wait, and now if nothing is certain. The bound is for r
	// alone, as if the line before it were empty. It is never a guess, because a caller is rejected
	// on it.
	Forecast(now Instant, r Request) Forecast

	// Refund takes back permits that were granted but not used, because the caller gave up at the
	// same moment. The grant is the one that Take returned. Each grant is given back at most once.
	//
	// A bucket moves its state back if everything that was charged since some instant
	// has come back. Otherwise each permit keeps its instant. Only a caller who was in
	// line at that instant may have it, at the same cost and within the tolerance. If a
	// settled call went over its estimate, that debt is earned back first. A permit
	// that no caller takes in time is lost. Permits that come back after the tolerance
	// are available again as far as the limit has room. Those that a bucket earns within
	// 100 ms are lost. Windows stop counting the permits at once.
	Refund(now Instant, g Grant, r Request)

	// Settle corrects an estimate: the request r, for which g was granted, really cost actual. If
	// it cost more, the difference is charged now, whatever is at hand. If it cost less, the
	// difference is given back. That never leaves more than if actual had been charged at the
	// departure. The rest is dropped, and so are corrections of charges no longer remembered. A
	// limiter of one bucket begins to remember charges at its first Settle for less, or its first
	// cost of more than 100 ms. Since, Until and ID of both requests may be zero.
	Settle(now Instant, g Grant, r, actual Request)

	// Reconcile applies what the vendor answered. A pause holds all callers until its
	// end. Permits dated before it are void, and so are the savings of buckets, of
	// which one permit is left. After the pause the limits alone pace departures, so a
	// window lets out at once what it has. If the vendor's window has another phase,
	// more than that window's permits may reach the vendor in it, as without a pause.
	Reconcile(now Instant, f Fact)

	// Tune replaces the limits while running. Used permits stay used under the new limits, with
	// fractions. Permits at hand stay at hand, and the change grants nothing. A larger burst is
	// earned. If a window has more permits than before, the additional ones are let out evenly. A
	// Take with an instant before the change waits for the change.
	//
	// The error says which limits do not validate, or matches
	// [errors.ErrUnsupported] if the limiter's limits cannot be replaced. The old
	// limits stay then.
	Tune(now Instant, limits ...Limit) error

	// Tolerance returns the permit tolerance: for how long after its instant a
	// permit may still be spent. The function [Tolerance] computes it from limits.
	// Zero or less means the tolerance of no limits.
	Tolerance() time.Duration

	// State returns the state at an instant. It spends nothing.
	State(now Instant) State
}

// A Remote is a [Limiter] that enforces its limits together with others, such
// as other processes, and learns from them. It is found by type assertion. Its
// methods are safe for concurrent use.
type Remote interface {
	// Notify registers wake. The limiter calls it when an answer of Take no longer
	// holds, because permits came, or other processes sent a pause or other limits. It
	// may be called on any goroutine. The limiter holds no lock then. It never calls
	// wake from inside its own methods, because the queue that calls those holds its
	// lock. Only the last wake that was registered is called.
	Notify(wake func())

	// Fetch receives the n requests in line, from first to last. It may start one call
	// for them in the background. When the line becomes empty, Fetch is called once
	// with n zero. The sequence may be read only during the call, and costs only what
	// is read of it. A request whose Since is later than now is of a caller that another
	// limiter holds until then: an earlier permit is of no use. The sequence may be shorter than
	// n: the others need no permit yet.
	Fetch(now Instant, n int, line iter.Seq[Request])

	// Close ends what the limiter does in the background and gives back what it
	// holds. It does not wait for that. Nothing is granted afterwards. Calling it
	// again does nothing.
	Close() error
}

// ErrExceedsBurst is matched by the error for a request of more permits than
// its limit ever grants at once.
var ErrExceedsBurst = errors.New("cost exceeds burst")

// A Forecast says why a request must wait, and how long at least.
type Forecast struct {
	At     Instant // the request cannot go before it; not after now: it could go now; Never: Take returns an error
	Limit  string  // the name of the limit that holds the request; "" if none does
	Reason Reason  // what the request would wait for; "" if it could go now
	Lane   string  // of several limiters that are asked together, the name of the one that holds the request; "": there is one
}

// A Reason says what a request waits for, in the words of the telemetry.
type Reason string

// The reasons of a wait.
const (
	ReasonRate        Reason = "rate"        // permits of a limit
	ReasonPause       Reason = "pause"       // the end of a pause that the vendor asked for
	ReasonConcurrency Reason = "concurrency" // calls in flight to end
	ReasonStore       Reason = "store"       // the store to answer
)

// A Fact is what a limiter must know of a vendor's answer. The zero value says
// nothing.
type Fact struct {
	Until Instant // when a pause that the vendor asked for ends; zero: it asked for none

	// Resumed comes from an operator, not from a vendor: a running pause ends now, as
	// if that had been its end. Until is then ignored. A store passes it to the other
	// processes that share the limits.
	Resumed bool
}

// A State is the state of a limiter at one instant.
type State struct {
	Paused time.Duration // until the pause ends; zero: it is not paused
	Whole  bool          // nothing is used or paused: a new limiter would be the same
	Limits []LimitState  // in the order in which the limits were given
	Store  *StoreState   // nil: the limits are enforced in this process alone
}

// A StoreState says how a limiter fares with the store through which it shares
// its limits with other processes.
type StoreState struct {
	Lost     bool   // the store does not answer, and the policy for its loss is in force
	Cause    string // of the loss, in one word such as "timeout"; "" if it is not lost
	Replicas int    // processes that shared the limits lately; zero: the store never replied
	Differs  bool   // another process claims stricter limits, which are in force
	Calls    uint64 // calls to the store
	Failures uint64 // calls that brought no answer, or an error
	Unknown  uint64 // permits asked for in calls without an answer; they may be lost
	Void     uint64 // permits not taken in time
	Local    uint64 // permits spent under the policy for a loss
}

// A FlightState says how many calls of a lane may be in flight in this process.
type FlightState struct {
	Slots     int    // calls that this process may have in flight now
	Fleet     int    // slots of all processes, as last replied; zero: never
	Processes int    // that called the store lately, as last replied; zero: never
	Lost      bool   // the store does not answer, and the policy for its loss is in force
	Cause     string // of the loss, in one word such as "timeout"; "" if it is not lost
	Calls     uint64 // calls to the store
	Failures  uint64 // of them, the ones that brought no answer, or an error
}

// A LimitState is the state of one limit at one instant.
type LimitState struct {
	Limit       Limit
	Headroom    float64       // permits that could be spent at once; negative: that many are owed
	Next        time.Duration // until one permit could be spent; zero: at once
	Utilization float64       // share of the burst, or of the window's permits, that is used; above 1 if permits are owed
}
