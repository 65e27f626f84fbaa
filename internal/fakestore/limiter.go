package fakestore

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

var (
	errEnded   = errors.New("fakestore: the store is closed")
	errTimeout = errors.New("fakestore: the server did not answer")
)

// A permit is the right of one request of that cost, at an instant.
type permit struct {
	at      throttle.Instant
	request throttle.Request
}

// A limiter is one key's at one replica.
type limiter struct {
	store *Store
	key   string

	mu        sync.Mutex
	limits    []throttle.Limit
	tolerance time.Duration
	hand      []permit // by instant
	epoch     int
	paused    throttle.Instant
	next      throttle.Instant // none but those in hand before it, as the last run told
	fetching  bool
	turned    int // grows when a pause told here makes a run under way void
	failures  int
	again     throttle.Instant // after a failure: when to call again
	cut       bool             // the rate was cut, so that served calls matter
	replicas  int              // as the last run told
	cause     string           // why the last call failed; "": it did not
	calls     int
	failed    int // of those
	unknown   int // permits asked for in calls without an answer
	void      int // permits that nobody took in time
	closed    bool
	wake      func()

	asked throttle.Instant // what the queue's clock said at the last call
	sent  time.Time        // and when that was; zero: there was none
}

// Take implements [throttle.Limiter].
func (l *limiter) Take(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.check(r); err != nil {
		return 0, err
	}
	if now < l.paused {
		return l.paused, nil
	}
	if asksNothing(r) || len(l.limits) == 0 {
		return now, nil
	}
	l.expire(now)
	i := l.find(now, r)
	switch {
	case i < 0:
		return l.askAgain(now), nil
	case l.hand[i].at > now:
		return l.hand[i].at, nil
	}
	return l.spend(i, r), nil
}

// spend takes r's cost out of a permit in hand. The rest stays, for others.
func (l *limiter) spend(i int, r throttle.Request) throttle.Instant {
	p := l.hand[i]
	rest := throttle.Request{Each: make([]int, len(l.limits))}
	for k := range rest.Each {
		rest.Each[k] = p.request.Of(k) - r.Of(k)
	}
	if l.hand[i].request = rest; asksNothing(rest) {
		l.hand = slices.Delete(l.hand, i, i+1)
	}
	return p.at
}

// askAgain returns when a call may bring what is not in hand.
func (l *limiter) askAgain(now throttle.Instant) throttle.Instant {
	if !l.fetching && l.again > now {
		return l.again
	}
	return throttle.Never
}

func (l *limiter) check(r throttle.Request) error {
	if l.closed {
		return errEnded
	}
	for i, limit := range l.limits {
		n, most := r.Of(i), limit.Permits
		switch limit.Algorithm {
		case throttle.AlgorithmLeakyBucket:
			most = n
		case throttle.AlgorithmTokenBucket, throttle.AlgorithmGCRA:
			most = limit.Burst
		}
		if n < 0 {
			return fmt.Errorf("fakestore: %d permits are negative", n)
		}
		if n > most {
			return fmt.Errorf("fakestore: %d permits of limit %q, at most %d: %w", n, limit.Name, most, throttle.ErrExceedsBurst)
		}
	}
	return nil
}

func asksNothing(r throttle.Request) bool {
	return r.N == 0 && !slices.ContainsFunc(r.Each, func(n int) bool { return n != 0 })
}

// find returns the first permit in hand that covers r, and came while r was in
// line or is still to come; -1 where none does.
func (l *limiter) find(now throttle.Instant, r throttle.Request) int {
	since := r.Since
	if since == 0 {
		since = now
	}
	return slices.IndexFunc(l.hand, func(p permit) bool {
		for i := range l.limits {
			if p.request.Of(i) < r.Of(i) {
				return false
			}
		}
		return p.at >= since
	})
}

// expire voids what was not taken within the tolerance.
func (l *limiter) expire(now throttle.Instant) {
	stale := 0
	for stale < len(l.hand) && l.hand[stale].at < now.Add(-l.tolerance) {
		stale++
	}
	l.void += stale
	l.hand = slices.Delete(l.hand, 0, stale)
}

// hold puts a permit in hand.
func (l *limiter) hold(p permit) {
	i := slices.IndexFunc(l.hand, func(q permit) bool { return q.at > p.at })
	if i < 0 {
		i = len(l.hand)
	}
	l.hand = slices.Insert(l.hand, i, p)
}

// drop voids what is in hand.
func (l *limiter) drop() {
	l.void += len(l.hand)
	l.hand, l.next = nil, 0
}

// now returns the instant by the queue's clock, outside its calls.
func (l *limiter) now() throttle.Instant {
	if l.sent.IsZero() {
		return throttle.InstantOf(time.Now())
	}
	return l.asked.Add(time.Since(l.sent))
}

// Forecast implements [throttle.Limiter]. Until a first run has come nothing
// is certain.
func (l *limiter) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.check(r) != nil {
		return throttle.Forecast{At: throttle.Never}
	}
	if now < l.paused {
		return throttle.Forecast{At: l.paused, Reason: throttle.ReasonPause}
	}
	if asksNothing(r) {
		return throttle.Forecast{At: now}
	}
	at := l.next
	if i := l.find(now, r); i >= 0 {
		at = min(at, l.hand[i].at)
	}
	if at <= now {
		return throttle.Forecast{At: now, Reason: throttle.ReasonStore}
	}
	return throttle.Forecast{At: at, Reason: throttle.ReasonRate}
}

// Refund implements [throttle.Limiter]: the permit is in hand again, with its
// instant.
func (l *limiter) Refund(now, at throttle.Instant, r throttle.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if asksNothing(r) {
		return
	}
	if at < max(l.paused, now.Add(-l.tolerance)) || l.closed {
		l.void++
		return
	}
	l.hold(permit{at, r})
}

// Notify implements [throttle.Remote].
func (l *limiter) Notify(wake func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake = wake
}

// Tolerance implements [throttle.Limiter].
func (l *limiter) Tolerance() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tolerance
}

// State implements [throttle.Limiter]. What the replicas have used is with the
// server, and outlives the limiter.
func (l *limiter) State(now throttle.Instant) throttle.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := throttle.State{
		Whole: now >= l.paused && len(l.hand) == 0 && !l.fetching,
		Cut:   1,
		Store: &throttle.StoreState{
			Lost:     l.cause != "",
			Cause:    l.cause,
			Replicas: l.replicas,
			Calls:    uint64(l.calls),
			Failures: uint64(l.failed),
			Unknown:  uint64(l.unknown),
			Void:     uint64(l.void),
		},
	}
	if now < l.paused {
		s.Paused = l.paused.Sub(now)
	}
	for _, limit := range l.limits {
		s.Limits = append(s.Limits, throttle.LimitState{Limit: limit, Next: max(l.next.Sub(now), 0)})
	}
	return s
}

// Close takes the limiter from the server. What it holds is lost.
func (l *limiter) Close() error {
	l.store.server.part(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
	l.closed, l.wake = true, nil
	return nil
}
