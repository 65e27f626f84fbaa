package weir

import (
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of what a Transport remembers of calls that failed.
const (
	maxFailures = 256 // calls remembered at a time

	// An outer client waits no longer than this before it tries again, and
	// twice as long each time: twice what the clients that we know wait.
	outerWait    = 2 * time.Second
	maxOuterWait = 30 * time.Second
)

// failures remember the calls that failed lately, by their identity.
type failures struct {
	began time.Time
	until atomic.Int64 // when the last of them is forgotten, since began; zero: none is remembered

	mu    sync.Mutex
	known map[identity]failure
	order []identity // known in the order they came, as a ring; an entry may be gone from known
	next  int        // index of the oldest, once the ring is full
}

// A failure is what came of the calls in one outer client's loop.
type failure struct {
	calls     int           // calls of the loop, all of which failed
	sent      int           // attempts of all these calls
	throttled int           // attempts that were throttled
	spent     bool          // the last call failed as often as its policy allows
	until     time.Duration // when it is forgotten, since failures.began

	resp *keptResponse // the response of the last call; nil: it ended with err
	err  error
}

// now returns the time since began.
func (f *failures) now() time.Duration { return time.Since(f.began) }

// find returns the failure that a call with this identity continues. Try is the
// number that the outer client gives to the call; zero means that it gives
// none.
func (f *failures) find(id identity, try int) (failure, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.known[id]
	return known, ok && try != 1 && f.now() <= known.until
}

// add remembers a failure until the outer client must have tried again. If
// there are too many, it takes the place of the oldest.
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

// enter puts an identity into the ring. f.mu is held.
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

// some reports whether any failure is remembered. While none is, this is one
// atomic load, and all that a call pays.
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
