package weir

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"time"
)

// An own is a response of ours, and its body. The body of net/http may keep a reference to its
// response. Only the caller has a reference to this one, so the garbage collector finds it if it is
// dropped.
type own struct {
	*attempt
	resp   http.Response
	theirs *http.Response // the base sets its Trailer when the body ends
}

// own returns a copy of the response whose flight ends with its body, or when
// the caller drops it.
func (a *attempt) own(theirs *http.Response) *http.Response {
	o := &own{attempt: a, resp: *theirs, theirs: theirs}
	runtime.AddCleanup(o, a.lose, a.expire)
	o.resp.Body = o
	if conn, writes := theirs.Body.(io.ReadWriteCloser); writes {
		o.resp.Body = duplex{o, conn}
		if theirs.StatusCode == http.StatusSwitchingProtocols {
			o.resp.Body = &upgraded{conn, o}
		}
	}
	return &o.resp
}

// Read implements [io.Reader].
func (o *own) Read(p []byte) (int, error) {
	n, err := o.attempt.Read(p)
	if errors.Is(err, io.EOF) {
		o.resp.Trailer = o.theirs.Trailer
	}
	return n, err
}

// Close implements [io.Closer]. A body that is being closed was not dropped.
func (o *own) Close() error {
	defer runtime.KeepAlive(o)
	return o.attempt.Close()
}

// A duplex is the body of a response that can also be written to.
type duplex struct {
	io.ReadCloser
	io.Writer
}

// An upgraded is a connection that was upgraded. It is in flight until it is
// closed: if its server sends no more, it can still be written to.
type upgraded struct {
	io.ReadWriteCloser
	own *own
}

// Close implements [io.Closer].
func (u *upgraded) Close() error { return u.own.Close() }

// CloseWrite ends writing, as the connection's does.
func (u *upgraded) CloseWrite() error {
	if conn, ok := u.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return http.ErrNotSupported
}

// answered binds the attempt to the response: its context lives until the body is read or closed,
// and no longer. A connection that was upgraded belongs to the caller. If early, the call no longer
// counts as in flight. It returns the response for the caller.
func (a *attempt) answered(resp *http.Response, early bool) *http.Response {
	a.kept = true
	if resp.Request == nil {
		resp.Request = &a.out
	}
	a.values = resp.Request.Context()
	a.shown = *resp.Request.WithContext((*shownContext)(a))
	resp.Request = &a.shown
	lasts := a.lane.Gate.Bounded() && !early
	if early {
		a.land()
	}
	upgraded := resp.StatusCode == http.StatusSwitchingProtocols
	switch {
	case reflect.TypeOf(resp.Body).Size() == 0, upgraded && !lasts: // http.NoBody, and that of HTTP/2
		a.finish()
		return resp
	case upgraded:
		a.expire(nil)
	}
	a.ReadCloser = resp.Body
	if lasts {
		return a.own(resp)
	}
	resp.Body = a
	if w, writes := a.ReadCloser.(io.Writer); writes {
		resp.Body = duplex{a, w}
	}
	return resp
}

// A shownContext is the context of the request that a response shows. Callers use it after the
// response, so it lives as long as the caller's own. It has the caller's deadline and end, and the
// values that the base saw or added. Settle finds the attempt by it. It has neither the function
// that cancels the attempt, nor the attempt's client trace, which counts only what is sent for the
// attempt.
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

// outlived returns the context below a shownContext. Without it, a call that uses the context of an
// earlier response would keep all attempts before it in memory.
func outlived(ctx context.Context) context.Context {
	if s, ok := ctx.(*shownContext); ok {
		return s.caller
	}
	return ctx
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
