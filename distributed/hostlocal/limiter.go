package hostlocal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A limiter enforces the limits of a lane together with those of other processes. It
// decides by the arithmetic of throttle.Local over a state in a file, under the file's
// lock. A Take costs some system calls and never waits for them: if another process has
// the lock for longer, the caller asks again.
type limiter struct {
	store *Store
	path  string                                      // of the files, without their endings
	id    uint64                                      // of this process in the lane
	clock func(now throttle.Instant) throttle.Instant // reads the wall clock at an instant

	mu      sync.Mutex
	closed  bool
	hot     slots // the state
	cold    slots // the journal of what is learned
	checked throttle.Instant
	out     []byte // memory of the last write
	before  []byte // the state before the changes that are to be written; nil: it is in the file

	set    decider
	st     state
	union  union
	loaded bool             // the state was in a file, or was written to one
	dirty  bool             // the state has changed and is to be written
	limits []throttle.Limit // of this process, resolved
	claim  string           // the same
	off    time.Duration    // by which the lane's clock is ahead of the queue's

	pending  []func(h throttle.Instant) // changes not written yet
	lostAt   throttle.Instant           // since when the file is unusable; zero: it is usable
	cause    string                     // why it is unusable
	number   uint64                     // of the last write, when another process had the lock
	failures uint64
	calls    uint64

	poll    poll
	watch   store.Watch
	learner exchange
}

var _ store.Limiter = (*limiter)(nil)

// newLimiter returns the limiter of resolved limits, before its file is open.
func newLimiter(s *Store, path string, limits []throttle.Limit) *limiter {
	l := &limiter{store: s, path: path, id: rand.Uint64() >> 1, limits: limits, claim: claimOf(limits), clock: s.clock, st: state{events: rand.Uint64()}}
	if l.clock == nil { // not in tests
		l.clock = func(throttle.Instant) throttle.Instant { return throttle.InstantOf(time.Now()) }
	}
	wall := func(h throttle.Instant) throttle.Instant { return h.Add(-l.st.ahead) }
	set, _ := throttle.Local{Wall: wall}.Limiter("", limits...) // resolved
	l.set = set.(decider)
	l.union = unionOf(&state{claims: []claim{{limits: l.claim}}}, limits)
	l.poll.limiter = l
	l.learner.limiter = l
	return l
}

// start opens and reads the file, or later if another process has its lock.
func (l *limiter) start() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.lock(0)
	if err == nil {
		err = l.peek()
		unlock(l.hot.file)
	}
	if errors.Is(err, errBusy) {
		return nil
	}
	return err
}

const (
	busyFor = time.Millisecond      // about the time until a caller asks again if the lock is held
	lostFor = 20 * time.Millisecond // and if the file is unusable
	refuse  = time.Second           // callers are refused after that time
)

// Take implements [throttle.Limiter]. The error matches [ErrUnavailable] if the file
// could not be used for a second, and [ErrClosed] after Close.
func (l *limiter) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, err := l.begin(now)
	if err != nil {
		return l.lost(now, err)
	}
	l.off = h.Sub(now)
	g, err := l.decide(now, h, r)
	if failed := l.finish(h); failed != nil {
		return l.lost(now, failed)
	}
	l.found()
	l.learner.behind(l.st.learned.to)
	return g, err
}

// decide decides with the state in memory. It marks the state if something was spent.
func (l *limiter) decide(now, h throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	if hold := l.st.learned.holdsTo(h, len(l.st.members)); hold > h {
		return throttle.Grant{At: l.back(hold)}, nil
	}
	asks := l.union.request(r, l.limits)
	asks.Since = cmp.Or(asks.Since, now).Add(l.off)
	g, err := l.set.Take(h, asks)
	if err != nil || g.At > h {
		return throttle.Grant{At: l.back(g.At)}, err
	}
	if !free(&r, len(l.limits)) {
		l.dirty = true
		l.st.learned.depart(h)
	}
	granted := throttle.Grant{At: l.back(g.At), Ref: throttle.Ref{Instant: int64(g.At)}}
	if l.st.learned.counted == 1 {
		granted.Ref.Ordinal = l.st.learned.ordinal
	}
	return granted, nil
}

// free reports whether a request of n limits asks for nothing and is no call.
func free(r *throttle.Request, n int) bool {
	for i := range n {
		if r.Of(i) > 0 {
			return false
		}
	}
	return r.ID == 0 && (n > 0 || r.N == 0)
}

// back returns an instant of the lane's clock by the queue's clock.
func (l *limiter) back(at throttle.Instant) throttle.Instant {
	if at == throttle.Never {
		return at
	}
	return at.Add(-l.off)
}

// lost returns when to ask again while the file is unusable. After a second it returns an error.
func (l *limiter) lost(now throttle.Instant, err error) (throttle.Grant, error) {
	if l.closed {
		return throttle.Grant{}, fmt.Errorf("hostlocal: %w", err)
	}
	l.failures++
	if l.lostAt == 0 || errors.Is(err, errBusy) && l.moves() {
		l.lostAt, l.cause = now, causeOf(err)
	}
	if now.Sub(l.lostAt) >= refuse {
		return throttle.Grant{}, fmt.Errorf("hostlocal: %w: %s: %w", ErrUnavailable, l.path+laneFile, err)
	}
	again := lostFor
	if errors.Is(err, errBusy) {
		again = busyFor/2 + rand.N(busyFor)
	}
	return throttle.Grant{At: now.Add(again)}, nil
}

// causeOf returns in one word why a file cannot be used.
func causeOf(err error) string {
	switch {
	case errors.Is(err, errBusy):
		return "locked"
	case errors.Is(err, fs.ErrPermission):
		return "permission"
	case errors.Is(err, fs.ErrNotExist):
		return "missing"
	case errors.Is(err, syscall.ENOSPC):
		return "full"
	default:
		return "error"
	}
}

// moves reports whether other processes have written since the last look: then many processes hold
// the lock in turn, and none is stopped with it.
func (l *limiter) moves() bool {
	if l.hot.file == nil {
		return false
	}
	heads, _, err := l.hot.heads()
	last := l.number
	l.number = heads[newest(heads)].number
	return err == nil && l.number != last
}

// found notes that the file could be used.
func (l *limiter) found() { l.lostAt, l.cause, l.calls = 0, "", l.calls+1 }

// later applies op to the state at an instant of the lane's clock, now or once the file is usable.
func (l *limiter) later(now throttle.Instant, op func(h throttle.Instant)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.pending) >= mostPending {
		return
	}
	l.pending = append(l.pending, op)
	if !l.flush(now) {
		l.poll.retry()
	}
}

// mostPending bounds the changes that wait to be written.
const mostPending = 4096

// flush writes what is pending, and reports whether it could.
func (l *limiter) flush(now throttle.Instant) bool {
	h, err := l.begin(now)
	if err == nil {
		err = l.finish(h)
	}
	if err != nil {
		_, _ = l.lost(now, err)
		return false
	}
	l.found()
	return true
}

// Refund implements [throttle.Limiter].
func (l *limiter) Refund(now throttle.Instant, g throttle.Grant, r throttle.Request) {
	l.later(now, func(h throttle.Instant) {
		l.set.Refund(h, throttle.Grant{At: l.dated(g)}, l.union.request(r, l.limits))
		l.learner.lapse(g.Ref.Ordinal)
		g.Ref.Ordinal = 0 // it lapses once, although the change is repeated until it is written
	})
}

// dated returns the instant of a grant by the lane's clock.
func (l *limiter) dated(g throttle.Grant) throttle.Instant {
	if g.Ref.Instant != 0 {
		return throttle.Instant(g.Ref.Instant)
	}
	return g.At.Add(l.off)
}

// Settle implements [throttle.Limiter].
func (l *limiter) Settle(now throttle.Instant, g throttle.Grant, r, actual throttle.Request) {
	l.later(now, func(h throttle.Instant) {
		l.set.Settle(h, throttle.Grant{At: l.dated(g)}, l.union.request(r, l.limits), l.union.request(actual, l.limits))
	})
}

// Reconcile implements [throttle.Limiter].
func (l *limiter) Reconcile(now throttle.Instant, f throttle.Fact) {
	if f == (throttle.Fact{}) {
		return
	}
	l.mu.Lock()
	f.Until = f.Until.Add(l.look(now).Sub(now))
	l.mu.Unlock()
	l.later(now, func(h throttle.Instant) { l.set.Reconcile(h, f) })
}

// Tune implements [throttle.Limiter]. Limits of other processes stay in force, too, until they have
// not been seen for ten seconds.
func (l *limiter) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	resolved, err := resolve(limits)
	if err != nil {
		return err
	}
	l.later(now, func(h throttle.Instant) {
		if l.claim != claimOf(resolved) && len(l.st.members) < 2 {
			l.st.claims = slices.DeleteFunc(l.st.claims, l.made) // no other process has made it
		}
		l.limits, l.claim = resolved, claimOf(resolved)
		l.st.join(h, l.id, l.claim)
		l.union = union{} // a change counts from now on, also if the limits are the same
		l.unite(h)
	})
	return nil
}

// Tolerance implements [throttle.Limiter].
func (l *limiter) Tolerance() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set.Tolerance()
}

// Forecast implements [throttle.Limiter].
func (l *limiter) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return throttle.Forecast{At: throttle.Never}
	}
	h := l.look(now)
	asks := l.union.request(r, l.limits)
	if l.union.interval > 0 {
		asks.Each[len(asks.Each)-1] = 0 // it may be wrong, so no caller is rejected for it
	}
	asks.Since = cmp.Or(asks.Since, now).Add(l.off)
	f := l.set.Forecast(h, asks)
	if f.At <= h {
		return throttle.Forecast{At: now}
	}
	f.At = l.back(f.At)
	for i, limit := range l.union.limits {
		if own := l.union.own(i); limit.Name == f.Limit && own >= 0 {
			f.Limit = l.limits[own].Name
		}
	}
	return f
}

// look reads the state without the lock, and returns the instant by the lane's clock.
func (l *limiter) look(now throttle.Instant) throttle.Instant {
	if l.hot.file != nil && !l.closed && len(l.pending) == 0 {
		_ = l.peek() // otherwise, what was read last
	}
	h := l.clock(now).Add(l.st.ahead)
	if l.st.wrote.Sub(h) > stepped { // begin will move the lane's clock
		h = l.st.wrote
	}
	l.off = h.Sub(now)
	return h
}

// peek reads the state. If that cannot be used, the next decision reads it again.
func (l *limiter) peek() error {
	strayed, err := l.load()
	if strayed != "" {
		l.hot.head = header{}
	}
	return err
}

// State implements [throttle.Limiter].
func (l *limiter) State(now throttle.Instant) throttle.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.look(now)
	st := l.set.State(h)
	all := st.Limits
	st.Limits = make([]throttle.LimitState, len(l.limits))
	for i, limit := range l.limits {
		if at := l.union.back[i]; at >= 0 && at < len(all) {
			st.Limits[i] = all[at]
		}
		st.Limits[i].Limit = limit
	}
	st.Store = &throttle.StoreState{
		Lost: l.lostAt != 0 && now.Sub(l.lostAt) >= refuse, Cause: l.cause, Replicas: len(l.st.members), Differs: l.union.differs,
		Calls: l.calls + l.failures, Failures: l.failures,
	}
	return st
}

// Lend implements [store.Lender]. It lends nothing: Take needs no call.
func (l *limiter) Lend(now, _ throttle.Instant, line iter.Seq[throttle.Request]) func() {
	l.Fetch(now, 1, line)
	return nil
}

// Holder implements [store.Lender]. No permit is in hand.
func (l *limiter) Holder(throttle.Instant, iter.Seq[throttle.Request]) int { return -1 }

// Watch implements [store.Limiter].
func (l *limiter) Watch(w store.Watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = w
}

// stray reports an event, on a goroutine of its own because the lock is held. It is rare.
func (l *limiter) stray(e store.Event) {
	if l.watch.Strayed != nil {
		go l.watch.Strayed(e)
	}
}

// closing bounds how long Close tries to write. Others have the lock for microseconds if none is stopped.
const closing = 250 * time.Millisecond

// Close implements [throttle.Remote]. It first sends what this process holds, for 250 ms at
// most. The error is for permits and pauses that it could not write.
func (l *limiter) Close() error {
	l.store.mu.Lock()
	delete(l.store.open, l)
	l.store.mu.Unlock()
	return l.end(time.Now().Add(closing))
}

// end closes the limiter at a deadline at the latest.
func (l *limiter) end(deadline time.Time) error {
	l.poll.stop()
	l.learner.last(deadline)
	for {
		if left, err := l.leave(time.Now().Before(deadline)); left {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// leave writes what is pending, and that this process has ended, and closes the limiter. Its claim
// stays in force for some seconds more. If another process has the lock and time is left to ask
// again, the limiter stays open.
func (l *limiter) leave(hasTime bool) (left bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return true, nil
	}
	h, err := l.begin(throttle.InstantOf(time.Now()))
	if err == nil {
		l.st.members = slices.DeleteFunc(l.st.members, func(m member) bool { return m.id == l.id })
		l.dirty = true
		err = l.finish(h)
	}
	if hasTime && errors.Is(err, errBusy) {
		return false, nil
	}
	l.closed = true
	l.shut()
	if n := len(l.pending); err != nil && n > 0 {
		return true, fmt.Errorf("hostlocal: %d changes are not in %s: %w", n, l.path+laneFile, err)
	}
	return true, nil
}
