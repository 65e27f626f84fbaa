package weir

import (
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of what a Transport remembers of calls that failed.
const (
	maxFailures = 256 // at a time

	// An outer client waits no longer than this before it tries again, and
	// twice as long each time: twice what the clients that we know wait.
	outerWait    = 2 * time.Second
	maxOuterWait = 30 * time.Second
)

// failures are the calls that failed lately, by their identity.
type failures struct {
	began time.Time
	until atomic.Int64 // when the last of them is forgotten, since began; zero: there are none

	mu    sync.Mutex
	known map[identity]failure
	order []identity // of known, in a ring; some may be gone from there
	next  int        // the oldest, once the ring is full
}

// A failure is what came of the calls of one outer client's loop.
type failure struct {
	calls     int // which all failed
	sent      int // attempts of all of them
	throttled int // of these
	spent     bool
	until     time.Duration // when it is forgotten, since the failures' beginning

	resp *keptResponse // what the last call got; nil: an error
	err  error
}

func (f *failures) now() time.Duration { return time.Since(f.began) }

// find returns the failure that a call with the identity goes on from. try is
// the number that the outer client gives to the call; zero: it gives none.
func (f *failures) find(id identity, try int) (failure, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.known[id]
	return known, ok && try != 1 && f.now() <= known.until
}

// add remembers a failure, in place of the oldest if there are too many.
func (f *failures) add(id identity, failed failure, told time.Duration) {
	wait := min(outerWait<<min(failed.calls-1, 10), maxOuterWait)
	f.mu.Lock()
	defer f.mu.Unlock()
	failed.until = f.now() + told + wait
	if f.known == nil {
		f.known = make(map[identity]failure)
	}
	if _, ok := f.known[id]; !ok {
		f.enter(id)
	}
	f.known[id] = failed
	f.until.Store(max(f.until.Load(), int64(failed.until)))
}

// enter gives an identity its place in the ring. f.mu is held.
func (f *failures) enter(id identity) {
	if len(f.order) < maxFailures {
		f.order = append(f.order, id)
		return
	}
	delete(f.known, f.order[f.next])
	f.order[f.next] = id
	f.next = (f.next + 1) % maxFailures
}

// remove forgets the identity.
func (f *failures) remove(id identity) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, id)
}

// some reports whether any failure is remembered. It is all that a call pays
// while none is: one load.
func (f *failures) some() bool {
	until := f.until.Load()
	if until == 0 || int64(f.now()) <= until {
		return until != 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.until.CompareAndSwap(until, 0) {
		f.known, f.order, f.next = nil, nil, 0
	}
	return false
}
