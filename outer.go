package weir

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/backoff"
)

// A client around a Transport may try again what the Transport has tried
// already: an SDK, a retrying client, a loop. Each of its tries is a call here,
// so that 11 attempts of ours under 3 of theirs would be 33 requests. A
// Transport recognises such calls by their identity and counts on: one call of
// their caller becomes no more requests than the greater of the two numbers.
//
// Say ours is 4 and theirs 5. The first call fails after 4 requests. The second,
// third and fourth are tries that were made already: they get the answer of the
// first again, and nothing is sent. The fifth is sent once.

// The bounds of what a Transport remembers of calls that failed.
const (
	maxFailures = 256      // at a time
	maxKept     = 16 << 10 // bytes of a response's body; refusals and errors are shorter

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

// countOn finds out whether the call is an outer client's next try of one that
// failed. If that try was made already it returns the answer again.
func (c *call) countOn() (resp *http.Response, err error, answered bool) {
	failures := &c.t.failures
	if !failures.some() {
		return nil, nil, false
	}
	id, try := identityOf(c.req)
	failed, ok := failures.find(id, try)
	if !ok {
		return nil, nil, false
	}
	c.earlier = failed
	c.earlier.calls = max(failed.calls, try-1)
	if !failed.spent || c.earlier.calls >= failed.sent {
		return nil, nil, false
	}
	if resp, ok = failed.resp.again(c.req); !ok && failed.err == nil {
		return nil, nil, false
	}
	failed.calls = c.earlier.calls + 1
	failures.add(id, failed, 0)
	c.t.logger().LogAttrs(c.ctx, slog.LevelDebug, "weir: not sent: a client around this one tries again what was tried as often already",
		slog.String("lane", c.key), slog.Int("calls", failed.calls), slog.Int("attempts", failed.sent))
	return resp, failed.err, true
}

// noteFailure remembers a call that failed, or forgets the failures that it has
// made good.
func (c *call) noteFailure() {
	switch c.verdict {
	case "", backoff.ReasonFinal, backoff.ReasonCanceled:
		if c.earlier.calls > 0 && c.sent > 0 {
			id, _ := identityOf(c.req)
			c.t.failures.remove(id)
		}
		return
	}
	failed := failure{
		calls:     c.earlier.calls + 1,
		sent:      c.earlier.sent + c.sent,
		throttled: c.earlier.throttled + c.throttled,
		spent:     c.spent(),
		resp:      c.kept,
		err:       c.failed,
	}
	if c.refusedLast {
		failed.throttled++
	}
	if failed.sent > 1 || !failed.spent { // a call that is sent once multiplies nothing
		id, _ := identityOf(c.req)
		c.t.failures.add(id, failed, c.asked)
	}
}

// spent reports whether the call failed as often as its policy allows.
func (c *call) spent() bool {
	return c.verdict == backoff.ReasonAttempts || c.verdict == backoff.ReasonMaxThrottled
}

// keep keeps the answer of a call that failed as often as it may, for the tries
// of an outer client that were made with it.
func (c *call) keep(resp *http.Response, err error) {
	switch {
	case !c.spent() || c.earlier.sent+c.sent == 1:
	case err != nil:
		c.failed = err
	default:
		c.kept = keepResponse(resp)
	}
}
