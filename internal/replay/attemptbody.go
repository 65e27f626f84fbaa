package replay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// letGoTime is how long a base may keep the body of an attempt that is over. A base that learns
	// of the end needs a moment. A base that breaks its contract must not delay the next attempt
	// forever.
	letGoTime = time.Second
	// lookTime is how long a base may still use a body that is not needed again. After sending a
	// body whole, net/http looks for the end of it. If its Read then fails, it drops the
	// connection. Its own patience for that is as long (maxWriteWaitBeforeConnReuse).
	lookTime = 50 * time.Millisecond
)

// errBodyHeld says that a Read of the attempt before still blocks.
var errBodyHeld = errors.New("body is still read by the attempt before")

// An attemptBody is the body as the base of one attempt sees it. A base may
// read and close it on goroutines of its own, also after its RoundTrip has
// returned.
type attemptBody struct {
	from   io.Reader // source of Read: source, or the rewinder that reads source
	source io.Closer

	mu      sync.Mutex
	keep    bool          // source stays open when the attempt ends
	reading bool          // a Read is in progress
	ended   bool          // the base has closed it, or may read no more
	left    bool          // the base has closed it
	closing bool          // source is being closed, or is closed
	closed  bool          // source is closed
	idle    chan struct{} // closed when the base has let go; nil: no wait for that
}

// open begins an attempt with body, read through r if that is not nil.
func (a *attemptBody) open(body io.ReadCloser, r rewinder) {
	a.from, a.source = body, body
	if r != nil {
		a.from, a.keep = r, true
	}
}

// Read reads the body. Once the attempt is over, its base reads nothing more.
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

// Close is called by the base. It closes source even while source is read, because a base ends a
// blocking Read that way.
func (a *attemptBody) Close() error {
	a.mu.Lock()
	a.ended, a.left = true, true
	a.settle()
	return a.unlock(a.claim())
}

// release leaves source to the base: the base's Close closes it, at once if
// that was called before.
func (a *attemptBody) release() {
	a.mu.Lock()
	a.keep = false
	_ = a.unlock(a.claim())
}

// shut ends the attempt and closes source. If the base has not closed its body and one of its Reads
// is in progress, the end of that Read closes source.
func (a *attemptBody) shut() {
	a.mu.Lock()
	a.ended, a.keep = true, false
	a.settle()
	_ = a.unlock((!a.reading || a.left) && a.claim())
}

// wait returns when the base has let go: its body is closed, no Read is in progress, and source is
// closed unless it is kept. After letGoTime the base may read no more of a source that is kept.
// Another source is closed after lookTime, as the base would do it.
func (a *attemptBody) wait(ctx context.Context) error {
	a.mu.Lock()
	idle, kept := make(chan struct{}), a.keep
	a.idle = idle
	a.settle()
	a.mu.Unlock()
	if kept {
		if err := within(ctx, idle, letGoTime); !errors.Is(err, errBodyHeld) {
			return err
		}
		return a.end()
	}
	if err := within(ctx, idle, lookTime); !errors.Is(err, errBodyHeld) {
		return err
	}
	_ = a.Close()
	return within(ctx, idle, letGoTime)
}

// within waits for idle, but no longer than d.
func within(ctx context.Context, idle <-chan struct{}, d time.Duration) error {
	select {
	case <-idle:
		return nil
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-idle:
		return nil
	case <-timer.C:
		return errBodyHeld
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end lets the base read no more, and fails if one of its Reads is in progress.
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

// settle wakes the goroutine in wait if the base has let go. a.mu is held.
func (a *attemptBody) settle() {
	if a.idle != nil && a.ended && !a.reading && (a.keep || a.closed) {
		close(a.idle)
		a.idle = nil
	}
}

// claim reports whether source is to be closed now, and does so once. a.mu is
// held.
func (a *attemptBody) claim() bool {
	if !a.ended || a.keep || a.closing {
		return false
	}
	a.closing = true
	return true
}

// unlock unlocks a.mu, and then closes source if that was claimed. The caller's
// Close may take its time, so it is not called under the lock.
func (a *attemptBody) unlock(claimed bool) error {
	a.mu.Unlock()
	if !claimed {
		return nil
	}
	err := a.source.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.settle()
	return err
}
