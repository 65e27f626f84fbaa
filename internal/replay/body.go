// Package replay has the body of a request again for each of its attempts, and
// drains the response that is thrown away for the next.
package replay

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// A Body is one request's body over all its attempts. It is had again, in this
// order, from GetBody; from the memory that a bytes.Buffer, bytes.Reader or
// strings.Reader behind [io.NopCloser] reads; from the body itself if it can
// seek, beginning where it stood; from a copy of what was read of it, within a
// bound; or not at all.
//
// The way of use: Open takes the caller's body over. Next gives it to each
// attempt, and Renew may be called before that, while the response in hand can
// still be returned. Release is called if the last response goes to the caller:
// its base may still be sending. Close is deferred in every case, and ends what
// nobody else will. The caller's body is then closed once, and neither it nor
// the request is touched after that. The zero value is the body of a request
// without one. A Body is not safe for concurrent use; what Next returns is.
type Body struct {
	caller   io.ReadCloser
	getBody  func() (io.ReadCloser, error)
	renewed  io.ReadCloser // the body of the next attempt; nil: not yet had
	rewinder rewinder      // reads caller anew; nil: it cannot be
	first    attemptBody   // the first attempt's, kept here to save an allocation
	current  *attemptBody  // the last attempt's; nil: none yet
	released bool
}

var errBodySent = errors.New("body was sent and cannot be had again")

// Open takes over the body of req, which is not changed. Of a body that can be
// had again in no other way at most keep bytes are kept; zero means none.
func (b *Body) Open(req *http.Request, keep int64) {
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
		b.rewinder = s
	} else if keep > 0 && req.ContentLength <= keep {
		b.rewinder = &spool{from: req.Body, bound: keep}
	}
}

// Replayable reports whether Next would have the body again.
func (b *Body) Replayable() bool {
	return b.caller == nil || b.getBody != nil || b.rewinder != nil && b.rewinder.rewindable()
}

// Renew has the body anew for the next attempt, before the response in hand is
// thrown away. An error says that the body cannot be had again. If the body has
// to be rewound, Renew waits until the base of the attempt before has let go of
// it, no longer than a second; a base that has not closed the body by then reads
// no more of it, and one whose Read still blocks keeps it. The wait ends with
// ctx and its error. Before the first attempt Renew does nothing.
func (b *Body) Renew(ctx context.Context) (err error) {
	switch {
	case b.current == nil || b.renewed != nil:
		return nil
	case b.getBody != nil:
		b.renewed, err = b.getBody()
		return err
	case b.rewinder == nil:
		return errBodySent
	}
	if err := b.current.wait(ctx); err != nil {
		return err
	}
	if err := b.rewinder.rewind(); err != nil {
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
	b.current.open(body, b.rewinder)
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
