package throttle

import (
	"testing"
	"time"
)

// While the lock holds the state, the lock-free form decides nothing and leaves the word unchanged.
func TestFrozenWordIsNotSpentFrom(t *testing.T) {
	for _, l := range []Limit{TokenBucket(10, time.Second, 1), TokenBucket(10, time.Second, 5), LeakyBucket(10, time.Second)} {
		s, now := NewAt(l).(*set), Instant(time.Hour)
		if _, err := s.Take(now, Request{N: 1}); err != nil {
			t.Fatal(err)
		}
		q := s.quick.Load()
		now = now.Add(time.Minute)
		s.lock()
		if at, ok := q.take(now, &Request{N: 1, Since: now}); ok {
			t.Errorf("%v: a Take while the word is frozen = %d, want none", l, at)
		}
		if word := q.tat.Load(); word != frozen {
			t.Errorf("%v: the word is %d after a Take while it is frozen", l, word)
		}
		s.unlockAsFound()
		if _, ok := q.take(now, &Request{N: 1, Since: now}); !ok {
			t.Errorf("%v: no Take once the lock is free", l)
		}
	}
}
