package weir

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/shaping"
)

// An attempt watches one send: it is the context of the request that is sent,
// counts what is written for it on the wire, and is the body of the response,
// with whose end it ends.
type attempt struct {
	context.Context
	cancel        context.CancelCauseFunc
	trace         httptrace.ClientTrace
	out           http.Request // what is sent
	shown         http.Request // what the response shows as its request
	io.ReadCloser              // the body of the response

	caller context.Context
	values context.Context // of the request as the base shows it

	lane      *lane
	departure shaping.Departure // its request becomes what was settled
	secure    bool
	idle      http.RoundTripper

	written atomic.Int32 // requests on the wire
	unheard atomic.Int32 // of those, since a response began
	state   atomic.Int32
	done    atomic.Bool // the response has ended, and the context with it
	kept    bool        // a response was obtained

	mu      sync.Mutex // also of departure
	cause   error      // why it was stopped; nil: it was not
	settled []string   // units
}

// attemptKey finds the attempt among the values of its context.
type attemptKey struct{}

// traceKey is the key under which net/http looks for a client trace, found out
// by asking it to look. A trace put there by httptrace itself costs a context
// more for each attempt.
var traceKey = keyOf(func(ctx context.Context) { httptrace.ContextClientTrace(ctx) })

// cancelKey is the key under which a context finds what cancels it, found out in
// the same way.
var cancelKey = keyOf(func(ctx context.Context) { _ = context.Cause(ctx) })

// keyOf returns the key of the value that a function asks a context for.
func keyOf(ask func(context.Context)) any {
	asked := keyAsked{Context: context.Background()}
	ask(&asked)
	return asked.key
}

type keyAsked struct {
	context.Context
	key any
}

// Err says that the context has ended: only then is it asked why.
func (k *keyAsked) Err() error { return context.Canceled }

func (k *keyAsked) Value(key any) any {
	k.key = key
	return nil
}

// context returns the attempt as a context. A trace that the caller has put in
// its own is called too: composing changes the attempt's in place.
func (a *attempt) context() context.Context {
	if httptrace.ContextClientTrace(a.Context) != nil {
		httptrace.WithClientTrace(a.Context, &a.trace)
	}
	return a
}

// Value implements [context.Context].
func (a *attempt) Value(key any) any {
	switch key {
	case traceKey:
		return &a.trace
	case attemptKey{}:
		return a
	}
	return a.Context.Value(key)
}

// The states of an attempt.
const (
	sending int32 = iota
	stopped
	ended
)

// stop ends the attempt for a cause, unless it has ended.
func (a *attempt) stop(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state.CompareAndSwap(sending, stopped) {
		a.cause = cause
		a.cancel(cause)
	}
}

// end says that the base has returned, and returns why the attempt was stopped
// before; nil where it was not, and will not be.
func (a *attempt) end() error {
	if a.state.CompareAndSwap(sending, ended) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cause
}

// answered ties the attempt's end to the response's: its context must live
// while the body is read and no longer. What was upgraded is the caller's.
func (a *attempt) answered(resp *http.Response) {
	a.kept = true
	if resp.Request == nil {
		resp.Request = &a.out
	}
	a.values = resp.Request.Context()
	a.shown = *resp.Request.WithContext((*shownContext)(a))
	resp.Request = &a.shown
	if resp.Body == http.NoBody || resp.StatusCode == http.StatusSwitchingProtocols {
		a.cancel(nil)
		return
	}
	a.ReadCloser = resp.Body
	resp.Body = a
	if w, ok := a.ReadCloser.(io.Writer); ok {
		resp.Body = &duplex{a, w}
	}
}

// A shownContext is the context of the request that a response shows. It lives
// as long as the caller's, for callers go on with it after the response: it has
// the caller's deadline and end, the values that the base saw or added, and the
// attempt, for Settle. What ends the attempt is none of its values, and nor is
// the attempt's client trace, which counts what is sent for the attempt alone.
type shownContext attempt

// Deadline implements [context.Context].
func (s *shownContext) Deadline() (time.Time, bool) { return s.caller.Deadline() }

// Done implements [context.Context].
func (s *shownContext) Done() <-chan struct{} { return s.caller.Done() }

// Err implements [context.Context].
func (s *shownContext) Err() error { return s.caller.Err() }

// Value implements [context.Context].
func (s *shownContext) Value(key any) any {
	if key == traceKey || key == cancelKey {
		return s.caller.Value(key)
	}
	return s.values.Value(key)
}

// outlived returns the context without that of a response before it: calls that
// go on one from another must not keep all that were.
func outlived(ctx context.Context) context.Context {
	if s, ok := ctx.(*shownContext); ok {
		return s.caller
	}
	return ctx
}

// A duplex is the body of a response that can be written to.
type duplex struct {
	*attempt
	io.Writer
}

// Read implements [io.Reader].
func (a *attempt) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil {
		a.finish()
	}
	return n, err
}

// Close implements [io.Closer].
func (a *attempt) Close() error {
	err := a.ReadCloser.Close()
	a.finish()
	return err
}

// finish ends the context, once: it takes locks of the caller's context.
func (a *attempt) finish() {
	if a.done.CompareAndSwap(false, true) {
		a.cancel(nil)
	}
}
