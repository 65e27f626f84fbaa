package reserve

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/throttle"
)

// A dating is a limiter that is asked for permits of instants to come.
type dating struct {
	*Limiter
	server *redispipe.Server
}

// dated runs a test in a bubble.
func dated(t *testing.T, limit throttle.Limit, test func(*testing.T, *dating)) {
	synctest.Test(t, func(t *testing.T) {
		d := &dating{server: redispipe.Start(t, time.Millisecond)}
		d.Limiter = open(t, newHub(t, d.server.Client(t)), limit)
		test(t, d)
	})
}

// fetch shows the limiter a line, and returns how many calls it makes in the next 5 ms.
func (d *dating) fetch(line ...throttle.Request) (calls int) {
	before := d.server.Calls()
	d.Fetch(throttle.InstantOf(time.Now()), len(line), slices.Values(line))
	time.Sleep(5 * time.Millisecond)
	return d.server.Calls() - before
}

// held is a request of a caller that another limiter holds for a time.
func held(d time.Duration) throttle.Request {
	at := throttle.InstantOf(time.Now().Add(d))
	return throttle.Request{N: 1, Since: at, Until: at.Add(75 * time.Millisecond)}
}

// Redis has permits at hand, so nobody may be rejected because that in hand is for later.
func TestForecastIsNotOfAPermitForLater(t *testing.T) {
	dated(t, throttle.TokenBucket(2, time.Second, 5), func(t *testing.T, d *dating) {
		if d.fetch(held(400 * time.Millisecond)); inHand(d.Limiter) != 1 {
			t.Fatalf("%d permits in hand, want one", inHand(d.Limiter))
		}
		now := throttle.InstantOf(time.Now())
		if f := d.Forecast(now, throttle.Request{N: 1}); f.At > now {
			t.Errorf("Forecast() = %+v, in %v, want now", f, f.At.Sub(now))
		}
	})
}

// A permit for a caller that another limiter holds does not serve the callers in line.
func TestThoseInLineDoNotWaitForAPermitForLater(t *testing.T) {
	dated(t, throttle.LeakyBucket(5, time.Second), func(t *testing.T, d *dating) {
		later := held(150 * time.Millisecond)
		if d.fetch(later); inHand(d.Limiter) != 1 {
			t.Fatalf("%d permits in hand, want one", inHand(d.Limiter))
		}
		if d.fetch(later, throttle.Request{N: 1}); inHand(d.Limiter) != 2 {
			t.Errorf("%d permits in hand for two callers, want both", inHand(d.Limiter))
		}
	})
}

// Of two callers whom other limiters hold until one instant each gets a permit.
func TestAPermitForLaterIsOfOneCaller(t *testing.T) {
	dated(t, throttle.TokenBucket(5, time.Second, 5), func(t *testing.T, d *dating) {
		later := held(150 * time.Millisecond)
		d.fetch(later, later)
		if d.fetch(later, later); inHand(d.Limiter) != 2 {
			t.Errorf("%d permits in hand for two callers, want both", inHand(d.Limiter))
		}
	})
}

// What is in hand goes back although a caller is in line whom another limiter holds: a log has permits
// for any instant, so none is asked for that one.
func TestPermitsGoBackIfAllWaitElsewhere(t *testing.T) {
	dated(t, throttle.SlidingLog(2, time.Second), func(t *testing.T, d *dating) {
		if d.fetch(throttle.Request{N: 1}); inHand(d.Limiter) != 1 {
			t.Fatalf("%d permits in hand, want one", inHand(d.Limiter))
		}
		d.fetch(held(800 * time.Millisecond))
		time.Sleep(2 * lingerFor)
		if inHand(d.Limiter) != 0 {
			t.Errorf("%d permits in hand, want none", inHand(d.Limiter))
		}
	})
}

// A permit that was refused is not asked for again because a later one was granted.
func TestARefusalOfAPermitForLaterIsTrusted(t *testing.T) {
	dated(t, throttle.LeakyBucket(1, time.Second), func(t *testing.T, d *dating) {
		d.fetch(throttle.Request{N: 1})
		if _, err := d.Take(throttle.InstantOf(time.Now()), throttle.Request{N: 1}); err != nil {
			t.Fatal(err)
		}
		later := held(500 * time.Millisecond)
		if n := d.fetch(later); n != 1 || inHand(d.Limiter) != 0 {
			t.Fatalf("%d calls, and %d permits in hand, want one call that is refused", n, inHand(d.Limiter))
		}
		if d.fetch(throttle.Request{N: 1}); inHand(d.Limiter) != 1 {
			t.Fatalf("%d permits in hand, want one in a second", inHand(d.Limiter))
		}
		if n := d.fetch(later); n != 0 {
			t.Errorf("%d calls for a permit that was refused 10 ms ago, want none", n)
		}
	})
}

// A permit that is due stays in hand for a moment. Otherwise the caller, whom another limiter holds by
// now, would ask for it again as soon as it is back.
func TestADuePermitGoesBackAfterAMoment(t *testing.T) {
	dated(t, throttle.LeakyBucket(1, time.Second), func(t *testing.T, d *dating) {
		d.fetch(throttle.Request{N: 1})
		if n := d.fetch(held(3 * time.Second)); n != 0 || inHand(d.Limiter) != 1 {
			t.Errorf("%d calls, and %d permits in hand, want the permit for a moment", n, inHand(d.Limiter))
		}
		if time.Sleep(lingerFor); inHand(d.Limiter) != 0 {
			t.Errorf("%d permits in hand, want none", inHand(d.Limiter))
		}
	})
}

// A permit that urgent callers may need is promised once it is near, and not asked for in vain before.
func TestAPermitOfAReserveIsAskedForOnceItIsNear(t *testing.T) {
	dated(t, throttle.TokenBucket(5, time.Second, 2).Reserving("1"), func(t *testing.T, d *dating) {
		later := held(150 * time.Millisecond)
		if n := d.fetch(later); n == 0 || inHand(d.Limiter) != 0 {
			t.Fatalf("%d calls, and %d permits in hand, want a call that is refused", n, inHand(d.Limiter))
		}
		for range 20 {
			if n := d.fetch(later); n != 0 {
				t.Fatalf("%d calls for a permit that is kept for others, want none", n)
			}
		}
		time.Sleep(50 * time.Millisecond)
		if d.fetch(later); inHand(d.Limiter) != 1 {
			t.Errorf("%d permits in hand at its instant, want it", inHand(d.Limiter))
		}
	})
}

// A reply says what is left of a bucket, and not that all of it is reserved. So its first permit counts.
func TestForecastLeavesTheReserve(t *testing.T) {
	dated(t, throttle.TokenBucket(5, time.Second, 2).Reserving("1"), func(t *testing.T, d *dating) {
		one := throttle.Request{N: 1}
		d.fetch(one)
		taken := throttle.InstantOf(time.Now())
		if g, err := d.Take(taken, one); err != nil || g.At > taken {
			t.Fatalf("Take() = %+v, %v, want the permit at hand", g, err)
		}
		d.fetch(one)
		now := throttle.InstantOf(time.Now())
		if f := d.Forecast(now, one); f.Reason != throttle.ReasonRate || f.At.Sub(taken) < 180*time.Millisecond {
			t.Errorf("Forecast() = %+v, %v after the last permit that may be taken, want 0.2 s", f, f.At.Sub(taken))
		}
		if f := d.Forecast(now, throttle.Request{N: 1, Urgent: true}); f.At > now {
			t.Errorf("Forecast() = %+v for an urgent call, want now", f)
		}
	})
}

// A back-off puts off callers who leave a reserve, but no urgent ones. It ends when no other replica is
// left, and when the limits change.
func TestBackOffEndsWithItsCause(t *testing.T) {
	limit := throttle.TokenBucket(5, time.Second, 3).Reserving("1")
	for _, c := range []struct {
		name  string
		with  func(*dating)
		line  throttle.Request
		calls bool
	}{
		{"another replica", func(*dating) {}, throttle.Request{N: 1}, false},
		{"an urgent caller", func(*dating) {}, throttle.Request{N: 1, Urgent: true}, true},
		{"no other replica", func(d *dating) { d.known.alive = 1 }, throttle.Request{N: 1}, true},
		{"other limits", func(d *dating) { _ = d.install([]throttle.Limit{limit}) }, throttle.Request{N: 1}, true},
		{"the end of a pause", func(d *dating) { d.resume(throttle.InstantOf(time.Now())) }, throttle.Request{N: 1}, true},
	} {
		dated(t, limit, func(t *testing.T, d *dating) {
			d.fetch(throttle.Request{N: 1}) // the first call takes longer
			d.Mu.Lock()
			d.discard(d.hand.all())
			d.known.alive, d.demand.shy = 2, throttle.InstantOf(time.Now().Add(time.Second))
			c.with(d)
			d.Mu.Unlock()
			if n := d.fetch(c.line); n > 0 != c.calls {
				t.Errorf("%s: %d calls, want some: %v", c.name, n, c.calls)
			}
		})
	}
}
