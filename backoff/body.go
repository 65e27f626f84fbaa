package backoff

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// A Body is one request's body over all its attempts. It is had again, in this
// order, from GetBody; from the memory that a bytes.Buffer, bytes.Reader or
// strings.Reader behind [io.NopCloser] reads; from the body itself if it can
// seek, beginning where it stood; from a copy of what was read of it, within
// Policy.BufferBody; or not at all.
//
// The way of use: Open, which takes the caller's body over; Next before each
// attempt; Renew before a response is thrown away for another; Release where the response of the last one goes to the caller, whose
// base may still be sending; and Close in every case, deferred, which ends what
// nobody else will. The caller's body is then closed once, and neither it nor
// the request is touched after that. The zero value is the body of a request
// without one. Not for concurrent use but for what Next returns.
type Body struct {
	caller   io.ReadCloser
	getBody  func() (io.ReadCloser, error)
	renewed  io.ReadCloser // the body of the next attempt; nil: not yet had
	replay   replay        // nil: not had again from caller
	first    attemptBody   // the first attempt's, kept here to save an allocation
	current  *attemptBody  // the last attempt's; nil: none yet
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
	if memory := inMemory(req.Body); memory != nil {
		b.getBody = snapshot(memory)
	} else if s, ok := newSeek(req.Body); ok {
		b.replay = s
	} else if bound := p.bufferBody(); bound > 0 && req.ContentLength <= bound {
		b.replay = &spool{from: req.Body, bound: bound}
	}
}

// Replayable reports whether Next would have the body again.
func (b *Body) Replayable() bool {
	return b.caller == nil || b.getBody != nil || b.replay != nil && b.replay.rewindable()
}

// Renew has the body anew for the next attempt, before the response in hand is
// thrown away: an error says that the body cannot be had. Where the body has to
// be rewound Renew waits until the base of the attempt before has let go of it,
// no longer than a second; a base that has not closed the body by then reads no
// more of it, and one whose Read still blocks keeps it. The wait ends with ctx
// and its error. Before the first attempt Renew does nothing.
func (b *Body) Renew(ctx context.Context) (err error) {
	switch {
	case b.current == nil || b.renewed != nil:
		return nil
	case b.getBody != nil:
		b.renewed, err = b.getBody()
		return err
	case b.replay == nil:
		return errBodySent
	}
	if err := b.current.wait(ctx); err != nil {
		return err
	}
	if err := b.replay.rewind(); err != nil {
		return err
	}
	b.renewed = b.caller
	return nil
}

// Next returns the body for the next attempt, whose base closes it. It renews
// the body if Renew was not called before.
func (b *Body) Next(ctx context.Context) (io.ReadCloser, error) {
	if b.caller == nil {
		return http.NoBody, nil
	}
	if err := b.Renew(ctx); err != nil {
		return nil, err
	}
	body := b.renewed
	if b.current == nil {
		body, b.current = b.caller, &b.first
	} else {
		if b.getBody != nil {
			b.current.shut()
		}
		b.renewed, b.current = nil, new(attemptBody)
	}
	b.current.open(body, b.replay)
	if inMemory(body) != nil {
		return body, nil
	}
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

// Close closes the caller's body now, unless it is closed or released, and what
// Renew made for an attempt that never was.
func (b *Body) Close() {
	if b.renewed != nil && b.getBody != nil {
		_ = b.renewed.Close()
	}
	switch {
	case b.released || b.caller == nil:
	case b.current == nil:
		b.released = true
		_ = b.caller.Close()
	default:
		b.current.shut()
	}
}
