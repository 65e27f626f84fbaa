// Package replay reads a request's body again for each attempt, and drains the response
// that is thrown away for the next one.
package replay

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// A Body holds one request's body over all its attempts. For an attempt after
// the first, the body comes from the first of these that it has:
//
//   - its GetBody;
//   - the memory that a bytes.Buffer, bytes.Reader or strings.Reader behind
//     [io.NopCloser] reads;
//   - the body itself, if it can seek, from where it stood at first;
//   - a copy of what was read of it, up to a bound.
//
// Without any of them, the request is sent once.
//
// Use it in this order. Open takes the caller's body over. Next returns the
// body for each attempt. Renew may be called before Next, while the response in
// hand can still be returned. Release is called if the last response goes to
// the caller, because the base may still be sending. Close is deferred in every
// case. The caller's body is closed exactly once; after that, neither the body
// nor the request is touched.
//
// The zero value is the body of a request that has none. A Body is not safe for concurrent use. The
// bodies that Next returns are.
type Body struct {
	caller   io.ReadCloser
	getBody  func() (io.ReadCloser, error)
	rewinds  bool          // getBody is the user's, and may rewind one reader
	renewed  io.ReadCloser // the body of the next attempt; nil: Renew was not called
	rewinder rewinder      // reads caller again; nil: impossible
	first    attemptBody   // the first attempt's, kept here to save an allocation
	current  *attemptBody  // the last attempt's; nil: no attempt
	released bool
}

// errBodySent reports that the previous attempt consumed the body.
var errBodySent = errors.New("body was sent and cannot be read again")

// errNoBody reports a GetBody that breaks its contract. The base would panic with a nil body.
var errNoBody = errors.New("GetBody returned no body")

// Open takes over the body of req, which is not changed. If a copy is the only
// way to read the body again, at most keep bytes of it are kept; zero means
// none.
func (b *Body) Open(req *http.Request, keep int64) {
	if req.Body == nil || req.Body == http.NoBody {
		return
	}
	b.caller, b.getBody = req.Body, req.GetBody
	if b.getBody != nil {
		b.rewinds = !copies(b.getBody)
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

// Replayable reports whether Next would return the body again.
func (b *Body) Replayable() bool {
	return b.caller == nil || b.getBody != nil || b.rewinder != nil && b.rewinder.rewindable()
}

// Renew gets the body for the next attempt, before the response in hand is thrown away. It returns
// an error if the body cannot be read again. Before the first attempt Renew does nothing.
//
// A body that is rewound must not be read by the base of the attempt before.
// Renew waits until that base has closed it, but no longer than a second. After
// that second the base reads no more of the body; if one of its Reads still
// blocks, Renew returns an error. The wait ends with ctx and its error.
//
// GetBody may rewind a body as well, and return one value each time. So before
// Renew calls it, it closes the body of the attempt before, and waits in the same
// way.
func (b *Body) Renew(ctx context.Context) (err error) {
	switch {
	case b.current == nil || b.renewed != nil:
		return nil
	case b.getBody == nil && b.rewinder == nil:
		return errBodySent
	}
	if err := b.current.wait(ctx); err != nil {
		return err
	}
	if b.getBody != nil {
		if b.renewed, err = b.getBody(); err == nil && b.renewed == nil {
			return errNoBody
		}
		return err
	}
	if err := b.rewinder.rewind(); err != nil {
		return err
	}
	b.renewed = b.caller
	return nil
}

// Next returns the body for the next attempt; the base of that attempt closes
// it. Next renews the body if Renew was not called before. The errors are those
// of Renew.
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
		b.renewed, b.current = nil, new(attemptBody)
	}
	b.current.open(body, b.rewinder)
	memory := inMemory(body)
	if memory == nil {
		return b.current, nil
	}
	b.current.shut() // the base's later use is not watched
	if b.rewinds {
		return snapshot(memory)()
	}
	return body, nil
}

// Release says that no attempt follows. The base of the last attempt closes the
// body when it is done.
func (b *Body) Release() {
	if b.current == nil {
		return
	}
	b.released = true
	b.current.release()
}

// Close closes the caller's body, unless it is closed or released, and a body
// that Renew got for an attempt that was not made.
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
