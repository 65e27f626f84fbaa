package weir

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// An attempt watches one send. It is the context of the request that is sent. It counts the
// requests on the wire for that request. It is also the body of the response. When that body ends,
// the attempt ends.
type attempt struct {
	out           http.Request // what is sent
	shown         http.Request // the request that the response shows
	io.ReadCloser              // the body of the response

	caller context.Context // the caller's context
	values context.Context // of the request that the base shows
	asked  *asked          // guarded by mu until the life begins; nil: not asked for

	charge             // of the call's lane; in a group, of all its lanes together
	group  *lane.Group // of lanes; nil: one lane
	number int32       // 1 for the first attempt of the call
	secure bool
	kept   bool // a response was obtained

	written atomic.Int32 // requests on the wire
	unheard atomic.Int32 // of those, the requests since a response began
	state   atomic.Int32
	life    atomic.Int32 // of the context

	mu sync.Mutex // also guards the departure
}

// An asked is made for an attempt when it is first needed. Most of it serves only bases that watch
// their context, as net/http does.
type asked struct {
	waited  *waited  // by the call, before this attempt; nil: no wait
	all     []charge // of each lane of the group; nil: not divided yet
	settled []string // units

	ending context.Context         // ends with the attempt; nil: not asked for
	cancel context.CancelCauseFunc // of ending
	cause  error                   // why the attempt was stopped; nil: not stopped
	trace  httptrace.ClientTrace   // zero: not asked for
}

// A charge is one lane's charge for an attempt, and its flight there. An attempt of more than 760
// bytes would take 896 of memory.
type charge struct {
	lane   *lane.Lane
	grant  throttle.Grant
	n      int                // permits of each limit
	whole  *shaping.Departure // its request is as settled so far; nil: grant and n say all of it
	flight lane.Flight        // zero: unbounded, or not departed
}

// departs notes the departure of the call's turn.
func (a *attempt) departs(c *call) {
	d := c.turn.Departure()
	a.n, a.grant, a.group, a.whole = d.Request.N, d.Grant, c.group, nil
	if d.Request.Each != nil || d.Request.Urgent || c.group != nil {
		whole := d
		a.whole = &whole
	}
}

// departure returns what was charged, as settled so far.
func (c *charge) departure() shaping.Departure {
	if c.whole != nil {
		return *c.whole
	}
	return shaping.Departure{Request: throttle.Request{N: c.n}, Grant: c.grant}
}

// each calls f with each lane's charge. In a group, mu is held, because the first call divides the
// charge.
func (a *attempt) each(f func(*charge)) {
	if a.group == nil {
		f(&a.charge)
		return
	}
	asked := a.ask()
	if asked.all == nil {
		asked.all = make([]charge, len(a.group.Lanes))
		for i, l := range a.group.Lanes {
			part := a.group.Queue.Part(*a.whole, i)
			asked.all[i].lane, asked.all[i].whole = l, &part
		}
	}
	for i := range asked.all {
		f(&asked.all[i])
	}
}

// flights calls f with each lane's charge, if the lanes bound their calls in flight.
func (a *attempt) flights(f func(*charge)) {
	if !a.lane.Gate.Bounded() {
		return
	}
	if a.group != nil { // a goroutine of Prepare may ask for the end of the context meanwhile
		a.mu.Lock()
		defer a.mu.Unlock()
	}
	a.each(f)
}

// fly begins the flight in each lane.
func (a *attempt) fly() { a.flights(func(c *charge) { c.lane.Fly(&c.flight) }) }

// land ends the flight in each lane.
func (a *attempt) land() { a.flights(func(c *charge) { c.lane.Land(&c.flight) }) }

// lose ends a flight whose body was dropped.
func (a *attempt) lose(cancel context.CancelCauseFunc) {
	a.flights(func(c *charge) { c.lane.Lose(&c.flight, cancel) })
}

// traceKey is the key under which net/http looks for a client trace. It is found by calling
// net/http. If httptrace itself put the trace there, each attempt would cost one more context.
var traceKey = keyOf(func(ctx context.Context) { httptrace.ContextClientTrace(ctx) })

// cancelKey is the key under which package context finds the function that
// cancels a context. It is found in the same way.
var cancelKey = keyOf(func(ctx context.Context) { _ = context.Cause(ctx) })

// keyOf returns the key for which a function asks a context.
func keyOf(ask func(context.Context)) any {
	asked := keyAsked{Context: context.Background()}
	ask(&asked)
	return asked.key
}

// A keyAsked is a context that notes the key it is asked for.
type keyAsked struct {
	context.Context
	key any
}

// Err reports that the context has ended. Only then is the cause requested.
func (k *keyAsked) Err() error { return context.Canceled }

// Value notes the key.
func (k *keyAsked) Value(key any) any {
	k.key = key
	return nil
}

// Deadline implements [context.Context].
func (a *attempt) Deadline() (time.Time, bool) { return a.caller.Deadline() }

// Done implements [context.Context].
func (a *attempt) Done() <-chan struct{} { return a.live().Done() }

// Err implements [context.Context].
func (a *attempt) Err() error { return a.live().Err() }

// Value implements [context.Context].
func (a *attempt) Value(key any) any {
	switch key {
	case traceKey:
		return a.clientTrace()
	case cancelKey:
		return a.live().Value(key)
	}
	return a.caller.Value(key)
}

// The life of an attempt's context.
const (
	unasked int32 = iota // its end was not asked for, and nothing was made for it
	living
	expired
)

// live returns the context that ends with the attempt. It is made when it is first
// asked for, because it takes the locks of the caller's context.
func (a *attempt) live() context.Context {
	if a.life.Load() == living {
		return a.asked.ending
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.ask()
	if asked.ending == nil {
		asked.ending, asked.cancel = context.WithCancelCause(a.caller)
		if !a.life.CompareAndSwap(unasked, living) {
			asked.cancel(asked.cause)
		}
	}
	return asked.ending
}

// ask returns the parts made for the attempt so far. A.mu is held.
func (a *attempt) ask() *asked {
	if a.asked == nil {
		a.asked = new(asked)
	}
	return a.asked
}

// expire ends the context. Ending it again does nothing.
func (a *attempt) expire(cause error) {
	if a.life.Load() != expired && a.life.Swap(expired) == living {
		a.asked.cancel(cause)
	}
}

// clientTrace returns the trace that counts the sends, made when first asked for. If the caller's
// context has a client trace, both are called. It is nil if nothing is counted and the caller has
// none.
func (a *attempt) clientTrace() *httptrace.ClientTrace {
	callers := httptrace.ContextClientTrace(a.caller)
	if observerOf(a.lane).t.UnguardedResends {
		return callers
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.ask()
	if asked.trace.GetConn == nil {
		asked.trace = httptrace.ClientTrace{GetConn: a.getConn, WroteHeaders: a.wroteHeaders, GotFirstResponseByte: a.responded}
		if callers != nil { // composing them changes the attempt's in place
			httptrace.WithClientTrace(a.caller, &asked.trace)
		}
	}
	return &asked.trace
}

// The states of an attempt.
const (
	sending int32 = iota
	stopped
	ended
)

// stop ends the attempt with a cause, unless the base has returned.
func (a *attempt) stop(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.CompareAndSwap(sending, stopped) {
		a.ask().cause = cause
		a.expire(cause)
	}
}

// end reports that the base has returned. It returns the cause if the attempt was stopped before;
// if it returns nil, the attempt will not be stopped any more.
func (a *attempt) end() error {
	if a.state.CompareAndSwap(sending, ended) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked.cause
}

// finish ends the context and the flight. Ending them again does nothing.
func (a *attempt) finish() {
	a.expire(nil)
	a.land()
}

// Bounds of net/http's own resends behind one attempt.
const (
	// maxStreamResends bounds the resends over HTTP/2. A server that answered GOAWAY or
	// REFUSED_STREAM to everything got 1,970 requests in 4 s.
	maxStreamResends = 2
	// maxDeadResends bounds the resends on connections found dead. The last one
	// goes over a new connection, after which net/http does not send again.
	maxDeadResends = 8
)

// A ResendError means that an attempt was stopped, because net/http had resent it as often as
// allowed.
type ResendError struct {
	Sent int // requests on the wire since the last response began, if one did
}

// Error returns the cause with its number.
func (e *ResendError) Error() string {
	return fmt.Sprintf("stopped after %d sends of one attempt, without an answer", e.Sent)
}

// Retryable returns true: another attempt may be sent.
func (e *ResendError) Retryable() bool { return true }

// getConn is called before each send, and stops those beyond the bound.
func (a *attempt) getConn(string) {
	unheard, http2 := int(a.unheard.Load()), observerOf(a.lane).server.http2(a.secure)
	switch resends := maxDeadResends; {
	case unheard == 0, a.written.Load() < 0: // it is not sent yet
	case http2 && unheard > maxStreamResends, unheard > resends:
		a.stop(&ResendError{Sent: unheard})
	case !http2 && unheard == resends:
		// Several connections in a row were dead. Idle ones are useless now; only a new one can
		// succeed.
		if c, ok := observerOf(a.lane).t.base.(interface{ CloseIdleConnections() }); ok {
			closed := make(chan struct{})
			go func() {
				c.CloseIdleConnections()
				close(closed)
			}()
			select {
			case <-closed:
			case <-time.After(10 * time.Millisecond): // it may need a lock that net/http holds here
			}
		}
	}
}

// wroteHeaders is called for each request on the wire. All but the first are
// charged to the lane, because they did not wait in line.
func (a *attempt) wroteHeaders() {
	a.unheard.Add(1)
	if a.written.Add(1) > 1 {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.each(func(c *charge) { c.lane.Queue.Charge(c.departure()) })
	}
}

// responded is called when a response begins. Later sends are no resends of net/http: the base
// itself authenticates, follows a redirect or tries again. Such requests are charged, and not
// bounded.
func (a *attempt) responded() { a.unheard.Store(0) }
