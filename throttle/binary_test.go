package throttle_test

import (
	"encoding"
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/throttle/limitertest"
)

// A stored limiter is written and read again, into another limiter, before each
// decision.
type stored struct{ throttle.Limiter }

func newStored(limits ...throttle.Limit) throttle.Limiter {
	return &stored{throttle.NewAt(limits...)}
}

func (s *stored) again() throttle.Limiter {
	data, err := s.Limiter.(encoding.BinaryAppender).AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	next := throttle.NewAt(throttle.FixedWindow(1, time.Second)) // any limit
	if err := next.(encoding.BinaryUnmarshaler).UnmarshalBinary(data); err != nil {
		panic(err)
	}
	s.Limiter = next
	return next
}

func (s *stored) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	return s.again().Take(now, r)
}

func (s *stored) Refund(now throttle.Instant, g throttle.Grant, r throttle.Request) {
	s.again().Refund(now, g, r)
}

func (s *stored) Settle(now throttle.Instant, g throttle.Grant, r, actual throttle.Request) {
	s.again().Settle(now, g, r, actual)
}

func (s *stored) Reconcile(now throttle.Instant, f throttle.Fact) { s.again().Reconcile(now, f) }

func (s *stored) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	return s.again().Tune(now, limits...)
}

// A limiter that is stored and read again between two decisions decides as before.
func TestStoredLimitersDecideAsBefore(t *testing.T) {
	histories := 1000
	if testing.Short() {
		histories = 20
	}
	limitertest.Suite{Make: newStored, Histories: histories}.Decisions(t)
}

func TestStoredLimitersHaveAnyNumbers(t *testing.T) {
	s := &stored{throttle.NewAt(throttle.SlidingLog(1, math.MaxInt64))}
	for _, limit := range []throttle.Limit{throttle.FixedWindow(math.MaxInt, time.Hour), throttle.SlidingLog(100, math.MaxInt64)} {
		if err := s.Tune(epoch, limit); err != nil {
			t.Fatal(err)
		}
		if g, err := s.Take(epoch, throttle.Request{N: 1}); err != nil {
			t.Errorf("Take of %v = %v, %v", limit, g, err)
		}
	}
}

// A stored limit still leaves to others what it keeps, and to urgent requests what it reserves.
func TestStoredLimitersKeepAndReserve(t *testing.T) {
	l := newStored(throttle.TokenBucket(10, time.Hour, 10).Keeping("50%").Reserving("2"))
	granted := 0
	for i := range 20 {
		if g, err := l.Take(1e18, throttle.Request{N: 1, Urgent: i >= 10}); err != nil {
			t.Fatal(err)
		} else if g.At <= 1e18 {
			granted++
		}
		if want := min(i+1, 3); i < 10 && granted != want {
			t.Fatalf("%d permits for %d requests that are not urgent, want %d", granted, i+1, want)
		}
	}
	if granted != 5 {
		t.Errorf("%d permits of 10, of which half are kept, want 5", granted)
	}
}

// Invalid bytes are an error, never a panic, and change nothing.
func FuzzUnmarshalBinary(f *testing.F) {
	for _, limits := range [][]throttle.Limit{
		nil, {throttle.TokenBucket(7, time.Second, 3)},
		{throttle.SlidingLog(5, time.Second), throttle.FixedWindow(9, 24*time.Hour).Aligned(throttle.AlignDay("Europe/Rome"))},
		{throttle.SlidingWindow(5, time.Minute), throttle.LeakyBucket(1, time.Hour), throttle.FixedWindow(3, time.Second).Aligned(throttle.AlignFirstUse)},
	} {
		l := throttle.NewAt(limits...)
		for i := range 4 {
			_, _ = l.Take(throttle.Instant(i)*1e8, throttle.Request{N: 1})
		}
		l.Settle(1e9, throttle.Grant{At: 2e8}, throttle.Request{N: 1}, throttle.Request{N: 30})
		data, _ := l.(encoding.BinaryAppender).AppendBinary(nil)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := throttle.NewAt(throttle.TokenBucket(1, time.Second, 1))
		if l.(encoding.BinaryUnmarshaler).UnmarshalBinary(data) != nil {
			if st := l.State(0); len(st.Limits) != 1 || !st.Whole {
				t.Fatalf("after an error the state is %+v", st)
			}
			return
		}
		for _, now := range []throttle.Instant{-1e18, 0, 1, 1e18} {
			_, _ = l.Take(now, throttle.Request{N: 1})
			l.State(now)
			l.Reconcile(now, throttle.Fact{Until: now + 1})
			l.Settle(now, throttle.Grant{At: now}, throttle.Request{N: 1}, throttle.Request{N: 3})
			l.Refund(now, throttle.Grant{At: now}, throttle.Request{N: 1})
		}
	})
}
