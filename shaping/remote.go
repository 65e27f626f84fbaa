package shaping

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A remote is a limiter that must see the line. Most lanes are idle, so it is made when a caller
// waits.
type remote struct {
	throttle.Remote
	lender store.Lender               // the limiter, if it is one; nil: it is not
	line   iter.Seq[throttle.Request] // requests of the callers in line; made once, because it takes memory

	// spare are the waiters of callers who departed. The memory of hundreds granted by one answer
	// is reused, because they may all be back in a moment. Nothing else points to them: the classes
	// have been paid.
	spare atomic.Pointer[sync.Pool] // nil: no crowd departed yet
}

// A crowd is the number of callers granted at once from which on a pool takes less memory than they
// do. It takes 128 bytes for each processor.
const crowd = 32

// meet returns the limiter if it is a remote one, and else nil.
func (q *Queue) meet() *remote {
	r := q.remote.Load()
	if r != nil {
		return r
	}
	limiter, ok := q.limiter.(throttle.Remote)
	if !ok {
		return nil
	}
	r = &remote{Remote: limiter, line: q.line.requests()}
	r.lender, _ = limiter.(store.Lender)
	q.remote.Store(r)
	return r
}

// spare returns the pool of waiters, and nil if there is none.
func (q *Queue) spare() *sync.Pool {
	if r := q.remote.Load(); r != nil {
		return r.spare.Load()
	}
	return nil
}

// newWaiter returns a waiter for a caller that may have to wait.
func (q *Queue) newWaiter(ctx context.Context, longest time.Duration) (w *waiter) {
	if p := q.spare(); p != nil {
		w, _ = p.Get().(*waiter)
	}
	if w == nil {
		w = &waiter{ready: make(chan struct{}, 1)}
	}
	w.ctx, w.deadline = ctx, q.deadline(ctx, longest, 0)
	return w
}

// departed takes back the waiter of a departed caller.
func (q *Queue) departed(w *waiter) {
	if p := q.spare(); p != nil {
		*w = waiter{ready: w.ready}
		p.Put(w)
	}
}
