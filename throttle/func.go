package throttle

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// LimiterFunc returns a limiter that decides by a function, for tests and for
// limiters that no limits describe. The function has the contract of
// [Limiter.Take], and returns the instant of the grant. It is called by one goroutine
// at a time.
//
// The other methods do what can be done without knowing what the function counts. A pause delays
// all callers until its end. The excess of a cost over its estimate is taken from the function
// before any other permits. Permits that are given back are lost. Only the end of a pause is
// forecast, and [Limiter.Tune] returns an error that matches [errors.ErrUnsupported]. The state is
// whole unless it is paused, or such an excess is still to be taken.
//
// It panics if take is nil.
func LimiterFunc(take func(now Instant, r Request) (at Instant, err error)) Limiter {
	if take == nil {
		panic("throttle: LimiterFunc of nil")
	}
	return &function{Limiter: newSet(nil, nil), take: take}
}

// A function is the limiter that LimiterFunc returns: a set without limits, which handles pauses,
// in front of the user's function.
type function struct {
	Limiter // the set; the function has none of its other methods
	mu      sync.Mutex
	take    func(now Instant, r Request) (Instant, error)
	owed    []Request // spent beyond the estimates, and not taken yet
}

// Take implements [Limiter].
func (f *function) Take(now Instant, r Request) (Grant, error) {
	if g, err := f.Limiter.Take(now, r); err != nil || g.At > now {
		return g, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.pay(now)
	if at > now {
		return Grant{At: at}, nil
	}
	at, err := f.take(now, r)
	return Grant{At: at}, err
}

// pay takes what is owed from the function. If the function does not grant it
// yet, pay returns when to ask again. If the function never grants it, it is
// owed no longer.
func (f *function) pay(now Instant) Instant {
	for len(f.owed) > 0 {
		if at, err := f.take(now, f.owed[0]); err == nil && at > now {
			return at
		}
		f.owed = f.owed[1:]
	}
	return now
}

// Settle implements [Limiter].
func (f *function) Settle(now Instant, _ Grant, r, actual Request) {
	more := Request{N: max(actual.N-r.N, 0)}
	for i := range max(len(r.Each), len(actual.Each)) {
		more.Each = append(more.Each, max(actual.Of(i)-r.Of(i), 0))
	}
	if more.N == 0 && !slices.ContainsFunc(more.Each, func(n int) bool { return n > 0 }) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owed = append(f.owed, more)
	f.pay(now)
}

// State implements [Limiter].
func (f *function) State(now Instant) State {
	s := f.Limiter.State(now)
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Whole = s.Whole && len(f.owed) == 0
	return s
}

// Tune implements [Limiter].
func (f *function) Tune(Instant, ...Limit) error {
	return fmt.Errorf("throttle: a function's limits cannot be changed: %w", errors.ErrUnsupported)
}
