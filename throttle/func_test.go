package throttle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// tenth grants one permit in each tenth of a second, at most three at once.
func tenth() throttle.Limiter {
	next := epoch
	return throttle.LimiterFunc(func(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
		switch {
		case r.N > 3:
			return 0, throttle.ErrExceedsBurst
		case now < next:
			return next, nil
		}
		next = now.Add(time.Duration(r.N) * 100 * time.Millisecond)
		return now, nil
	})
}

// takesAt fails unless one permit is granted at a time after the epoch, and none a nanosecond
// before.
func takesAt(t *testing.T, l throttle.Limiter, want time.Duration) {
	t.Helper()
	one, at := throttle.Request{N: 1}, epoch.Add(want)
	if got, err := l.Take(at-1, one); got.At != at || err != nil {
		t.Errorf("Take a nanosecond before %v = %v, %v, want to ask again then", want, got.At.Sub(epoch), err)
	}
	if got, err := l.Take(at, one); got.At != at || err != nil {
		t.Errorf("Take at %v = %v, %v, want a permit", want, got.At.Sub(epoch), err)
	}
}

func TestFunctionIsPaused(t *testing.T) {
	l := tenth()
	until := epoch.Add(time.Minute)
	l.Reconcile(epoch, throttle.Fact{Until: until})
	if f := l.Forecast(epoch, throttle.Request{N: 1}); f.At != until || f.Reason != throttle.ReasonPause {
		t.Errorf("Forecast = %+v, want the end of the pause", f)
	}
	if s := l.State(epoch); s.Paused != until.Sub(epoch) || s.Whole {
		t.Errorf("State = %+v, want a pause", s)
	}
	takesAt(t, l, time.Minute)
	now := epoch.Add(2 * time.Minute)
	l.Reconcile(now, throttle.Fact{Until: now.Add(time.Hour)})
	now = now.Add(time.Second)
	l.Reconcile(now, throttle.Fact{Resumed: true})
	if granted, err := l.Take(now, throttle.Request{N: 1}); granted.At != now || err != nil {
		t.Errorf("Take after the pause was ended = %v, %v, want a permit", granted.At.Sub(epoch), err)
	}
}

func TestFunctionIsChargedMoreThanEstimated(t *testing.T) {
	l := tenth()
	takesOne := func(at time.Duration) {
		t.Helper()
		if got, err := l.Take(epoch.Add(at), throttle.Request{N: 1}); got.At != epoch.Add(at) || err != nil {
			t.Fatalf("Take at %v = %v, %v, want a permit", at, got.At.Sub(epoch), err)
		}
	}
	takesOne(0)
	l.Settle(epoch, throttle.Grant{At: epoch}, throttle.Request{N: 1}, throttle.Request{N: 3}) // two more, due at 100ms
	if l.State(epoch).Whole {
		t.Error("State is whole with a debt")
	}
	if granted, _ := l.Take(epoch, throttle.Request{N: 1}); granted.At != epoch.Add(100*time.Millisecond) {
		t.Errorf("Take = %v, want to ask again when the debt can be taken", granted.At.Sub(epoch))
	}
	if granted, _ := l.Take(epoch.Add(100*time.Millisecond), throttle.Request{N: 1}); granted.At != epoch.Add(300*time.Millisecond) {
		t.Errorf("Take = %v, want 300ms: the debt was taken first", granted.At.Sub(epoch))
	}
	takesOne(300 * time.Millisecond)
	if !l.State(epoch).Whole {
		t.Error("State is not whole without a debt")
	}
	l.Settle(epoch, throttle.Grant{At: epoch}, throttle.Request{N: 3}, throttle.Request{N: 1})    // lost
	l.Settle(epoch, throttle.Grant{At: epoch}, throttle.Request{N: 1}, throttle.Request{N: 1000}) // can never be taken
	l.Settle(epoch, throttle.Grant{At: epoch}, throttle.Request{Each: []int{1}}, throttle.Request{Each: []int{1}})
	takesAt(t, l, 400*time.Millisecond)
}

func TestFunctionKeepsNothingThatIsGivenBack(t *testing.T) {
	l := tenth()
	if _, err := l.Take(epoch, throttle.Request{N: 1}); err != nil {
		t.Fatal(err)
	}
	l.Refund(epoch, throttle.Grant{At: epoch}, throttle.Request{N: 1})
	takesAt(t, l, 100*time.Millisecond)
}

func TestFunctionRefusesLimits(t *testing.T) {
	l := tenth()
	if err := l.Tune(epoch, throttle.LeakyBucket(1, time.Second)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Tune = %v, want one that matches errors.ErrUnsupported", err)
	}
	if got, want := l.Tolerance(), throttle.Tolerance(); got != want {
		t.Errorf("Tolerance = %v, want that of no limits, %v", got, want)
	}
	if _, err := l.Take(epoch, throttle.Request{N: -1}); err == nil {
		t.Error("Take of -1 permits = nil, want an error")
	}
	defer func() {
		if recover() == nil {
			t.Error("LimiterFunc(nil) returned")
		}
	}()
	throttle.LimiterFunc(nil)
}
