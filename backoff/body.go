package backoff

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// A Body is one request's body over all its attempts. It is had again, in this
// order, from GetBody; from the body itself where it can seek, beginning where
// it stood; from a copy of what was read of it, within Policy.BufferBody; or
// not at all.
//
// The way of use: Open, which takes the caller's body over; Next before each
// attempt; Release where the response of the last one goes to the caller, whose
// base may still be sending; and Close in every case, deferred, which ends what
// nobody else will. The caller's body is then closed once, and neither it nor
// the request is touched after that. The zero value is the body of a request
// without one. Not for concurrent use but for what Next returns.
type Body struct {
	caller   io.ReadCloser
	getBody  func() (io.ReadCloser, error)
	replay   replay       // nil: not had again from caller
	first    attemptBody  // the first attempt's, kept here to save an allocation
	current  *attemptBody // the last attempt's; nil: none yet
	released bool
}

// A replay is a reader that can begin anew.
type replay interface {
	io.Reader
	// rewind fails where what was read is lost.
	rewind() error
	// rewindable reports whether rewind would succeed, as far as is known.
	rewindable() bool
}

var errBodySent = errors.New("backoff: body was sent and cannot be had again")

// Open takes over the body of req, which is not changed; nil is a policy with
// the defaults.
func (b *Body) Open(req *http.Request, p *Policy) {
	if req.Body == nil || req.Body == http.NoBody {
		return
	}
	b.caller, b.getBody = req.Body, req.GetBody
	if b.getBody != nil {
		return
	}
	if s, ok := newSeek(req.Body); ok {
		b.replay = s
	} else if p != nil && p.BufferBody > 0 && req.ContentLength <= p.BufferBody {
		b.replay = &spool{from: req.Body, bound: p.BufferBody}
	}
}

// Replayable reports whether Next would have the body again.
func (b *Body) Replayable() bool {
	return b.caller == nil || b.getBody != nil || b.replay != nil && b.replay.rewindable()
}

// Next returns the body for the next attempt, whose base closes it. Where the
// body has to be rewound it first waits until the base of the attempt before
// has closed it, which may be after that attempt: drain its response and end
// its context first. A base that has not closed it after a second reads no more
// of it; only a Read that is on its way is waited for. The wait ends with ctx
// and its error.
func (b *Body) Next(ctx context.Context) (io.ReadCloser, error) {
	switch {
	case b.caller == nil:
		return http.NoBody, nil
	case b.current == nil:
		b.current = &b.first
		b.current.open(b.caller, b.replay)
		return b.current, nil
	case b.getBody != nil:
		return b.fromGetBody()
	case b.replay != nil:
		return b.fromReplay(ctx)
	}
	return nil, errBodySent
}

func (b *Body) fromGetBody() (io.ReadCloser, error) {
	b.current.shut()
	body, err := b.getBody()
	if err != nil {
		return nil, err
	}
	b.current = new(attemptBody)
	b.current.open(body, nil)
	return b.current, nil
}

func (b *Body) fromReplay(ctx context.Context) (io.ReadCloser, error) {
	if err := b.current.wait(ctx); err != nil {
		return nil, err
	}
	if err := b.replay.rewind(); err != nil {
		return nil, err
	}
	b.current = new(attemptBody)
	b.current.open(b.caller, b.replay)
	return b.current, nil
}

// Release says that no attempt follows and leaves the body to the base of the
// last one, which closes it when it is done.
func (b *Body) Release() {
	if b.current == nil {
		return
	}
	b.released = true
	b.current.release()
}

// Close closes the caller's body now, unless it is closed or released.
func (b *Body) Close() {
	switch {
	case b.released || b.caller == nil:
	case b.current == nil:
		b.released = true
		_ = b.caller.Close()
	default:
		b.current.shut()
	}
}
