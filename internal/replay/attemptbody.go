package replay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// letGoTime is how long a base may keep the body of an attempt that is over: one
// that was told of its end needs a moment, and one that breaks its contract must
// not hold up the next attempt for ever.
const letGoTime = time.Second

var errBodyHeld = errors.New("body is still read by the attempt before")

// An attemptBody is the body as the base of one attempt has it. A base may read
// and close it on goroutines of its own, also after its RoundTrip returned.
type attemptBody struct {
	from   io.Reader // what Read reads: source, or what keeps and rewinds it
	source io.Closer

	mu      sync.Mutex
	keep    bool          // source stays open when the attempt ends
	reading bool          // a Read is on its way
	ended   bool          // the base has closed it, or may read no more
	left    bool          // the base has closed it
	closed  bool          // source is closed
	idle    chan struct{} // closed when the base has let go; nil: nobody waits for that
}

// open begins an attempt with body, read through r if that is not nil.
func (a *attemptBody) open(body io.ReadCloser, r rewinder) {
	a.from, a.source = body, body
	if r != nil {
		a.from, a.keep = r, true
	}
}

func (a *attemptBody) Read(p []byte) (int, error) {
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	a.reading = true
	a.mu.Unlock()

	n, err := a.from.Read(p)

	a.mu.Lock()
	a.reading = false
	a.settle()
	_ = a.unlock(a.claim())
	return n, err
}

// Close is the base's. It closes source also while that is read, which is how a
// base ends a Read that blocks.
func (a *attemptBody) Close() error {
	a.mu.Lock()
	a.ended, a.left = true, true
	a.settle()
	return a.unlock(a.claim())
}

// release makes the base's Close, past or to come, close source.
func (a *attemptBody) release() {
	a.mu.Lock()
	a.keep = false
	_ = a.unlock(a.claim())
}

// shut closes source whether or not the base has closed a, but not under a Read
// of a base that has not: then the end of that closes it.
func (a *attemptBody) shut() {
	a.mu.Lock()
	a.ended, a.keep = true, false
	a.settle()
	_ = a.unlock((!a.reading || a.left) && a.claim())
}

// wait returns when the base has let go: closed a, and no Read is on its way. A
// base that does not close in time reads no more.
func (a *attemptBody) wait(ctx context.Context) error {
	a.mu.Lock()
	idle := make(chan struct{})
	a.idle = idle
	a.settle()
	a.mu.Unlock()
	timer := time.NewTimer(letGoTime)
	defer timer.Stop()
	select {
	case <-idle:
		return nil
	case <-timer.C:
		return a.end()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end lets the base read no more, and fails if a Read is on its way.
func (a *attemptBody) end() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.settle()
	if a.reading {
		return errBodyHeld
	}
	return nil
}

// settle tells who waits that the base has let go. a.mu is held.
func (a *attemptBody) settle() {
	if a.idle != nil && a.ended && !a.reading {
		close(a.idle)
		a.idle = nil
	}
}

// claim reports whether it is time to close source, once. a.mu is held.
func (a *attemptBody) claim() bool {
	if !a.ended || a.keep || a.closed {
		return false
	}
	a.closed = true
	return true
}

// unlock unlocks a.mu, and closes source where that was claimed: not under the
// lock, for the caller's Close may take its time.
func (a *attemptBody) unlock(claimed bool) error {
	a.mu.Unlock()
	if !claimed {
		return nil
	}
	return a.source.Close()
}
