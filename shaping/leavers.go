package shaping

import (
	"slices"
	"sync"
	"sync/atomic"
)

// leavers are callers who have given up, but may still be in line. A caller who gives up does not
// wait for the queue's lock. If another goroutine holds it, that one removes all leavers at once
// before it is done. So 100,000 callers that are cancelled together do not wait again, for the
// lock.
//
// It is a stack without a lock (Treiber 1986), because they would wait for a lock again.
type leavers struct{ top atomic.Pointer[leaver] }

type leaver struct {
	*waiter
	next *leaver
}

// some reports whether there are leavers.
func (l *leavers) some() bool { return l.top.Load() != nil }

// add adds w.
func (l *leavers) add(w *waiter) {
	n := &leaver{waiter: w}
	for {
		n.next = l.top.Load()
		if l.top.CompareAndSwap(n.next, n) {
			return
		}
	}
}

// take takes all.
func (l *leavers) take() (all []*waiter) {
	for n := l.top.Swap(nil); n != nil; n = n.next {
		all = append(all, n.waiter)
	}
	return all
}

// lock locks the queue, without callers in line that gave up before.
func (q *Queue) lock() {
	q.mu.Lock()
	if q.leavers.some() {
		q.sweep()
	}
}

// unlock unlocks the queue, wakes callers that came out of the line, and removes those that gave up
// meanwhile.
func (q *Queue) unlock() {
	q.free()
	q.sweepIfFree()
}

// free unlocks the queue, and wakes callers that came out of the line.
func (q *Queue) free() {
	out := q.out
	q.out = outgoing{}
	if j := q.joint(); j != nil {
		j.unlocked(q.line.count, q.line.bytes)
	}
	q.mu.Unlock()
	if out.wake() >= crowd { // their memory may be used again, if the limiter is remote
		if r := q.remote.Load(); r != nil && r.spare.Load() == nil {
			r.spare.CompareAndSwap(nil, new(sync.Pool))
		}
	}
}

// sweepIfFree removes the leavers from the line, unless another goroutine holds the lock: that one
// calls it after unlocking.
func (q *Queue) sweepIfFree() {
	for q.leavers.some() && q.mu.TryLock() {
		q.sweep()
		q.free()
	}
}

// leave removes w, whose caller has given up, from the line. If w was granted in the same moment,
// its permits go back.
func (q *Queue) leave(w *waiter) error {
	if w.leaves.Load() {
		return w.ctx.Err()
	}
	select {
	case <-w.ready:
		if w.out.err != nil {
			return w.out.err
		}
	default:
	}
	q.leavers.add(w)
	q.sweepIfFree()
	return w.ctx.Err()
}

// sweep removes the leavers from the line, under the lock. If the limiter panics, it unlocks the
// queue.
func (q *Queue) sweep() {
	swept := false
	defer func() {
		if !swept {
			q.free()
		}
	}()
	list, head, again := q.leavers.take(), q.line.first(), false
	for _, w := range list {
		if w.out.granted > 0 { // granted in the moment of the cancel: another may have it
			q.asleep.wakes(w)
			q.refund(q.Now(), w.out, w.request())
			again = true
		}
	}
	list = slices.DeleteFunc(list, func(w *waiter) bool { return w.index == 0 }) // out already
	if len(list) > 0 {
		again = q.dropAll(list) || again
	}
	if again || q.line.first() != head { // the others were measured against the leaver
		q.advance(q.Now())
	}
	swept = true
}

// many is the share of a line, one in many, from which on leavers are removed all at once. That
// takes a step for each caller in line; one by one takes about twenty for each leaver.
const many = 32

// dropAll takes waiters out of the line without a departure. It reports whether
// one of them was the next of its group to expire.
func (q *Queue) dropAll(list []*waiter) (expires bool) {
	for _, w := range list {
		expires = expires || w.expiry == 1
	}
	if len(list) < q.line.count/many {
		for _, w := range list {
			q.drop(w)
		}
		return expires
	}
	for _, w := range list {
		w.leaves.Store(true)
	}
	q.expiring.removeLeavers()
	for _, w := range list {
		if w.index > 0 { // the first of its tenant's
			q.line.removeLeavers(w.tenant)
		}
	}
	return expires
}

// dropHead removes the head, which has given up, as it did with n others before. If they become
// many, it removes all that have given up. It returns n for the next.
func (q *Queue) dropHead(w *waiter, n int) int {
	const few = 64
	if n < max(few, q.line.count/many) {
		w.leaves.Store(true)
		q.drop(w)
		return n + 1
	}
	var gone []*waiter
	for w := range q.line.all() {
		if w.ctx.Err() != nil {
			gone = append(gone, w)
		}
	}
	q.dropAll(gone)
	return 0
}
