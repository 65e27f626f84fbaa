package weir

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir/throttle"
)

// An attempt watches one send: it is the context of the request that is sent,
// counts what is written for it on the wire, and is the body of the response,
// with whose end it ends.
type attempt struct {
	context.Context
	cancel        context.CancelCauseFunc
	trace         httptrace.ClientTrace
	out           http.Request // what is sent
	io.ReadCloser              // the body of the response

	lane    *lane
	request throttle.Request
	charged throttle.Instant
	secure  bool
	idle    http.RoundTripper

	written atomic.Int32
	state   atomic.Int32
	done    atomic.Bool // the response has ended, and the context with it
	kept    bool        // a response was obtained

	mu      sync.Mutex // also of request
	cause   error      // why it was stopped; nil: it was not
	settled []string   // units
}

func newAttempt(c *call) *attempt {
	a := &attempt{lane: c.lane, secure: c.req.URL.Scheme == "https", idle: c.t.base}
	a.request, a.charged = c.turn.Charged()
	a.Context, a.cancel = context.WithCancelCause(c.ctx)
	if !c.t.UnguardedResends {
		a.trace = httptrace.ClientTrace{GetConn: a.getConn, WroteHeaders: a.wroteHeaders}
	}
	return a
}

// traceKey is the key under which net/http looks for a client trace, found out
// by asking it to look. A trace put there by httptrace itself costs a context
// more for each attempt.
var traceKey = func() any {
	var asked keyAsked
	httptrace.ContextClientTrace(&asked)
	return asked.key
}()

type keyAsked struct {
	context.Context
	key any
}

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
