package throttle_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// An operator ends a pause of any length at once: departures follow as after a pause that ends now.
func TestResumedLimiterGoesOnAsAfterThePause(t *testing.T) {
	for _, l := range []throttle.Limit{
		throttle.TokenBucket(10, time.Second, 5), throttle.LeakyBucket(10, time.Second), throttle.FixedWindow(10, time.Second),
		throttle.SlidingLog(10, time.Second), throttle.SlidingWindow(10, time.Second),
	} {
		t.Run(l.String(), func(t *testing.T) {
			resumed, ended := paused(l, epoch.Add(time.Hour)), paused(l, epoch.Add(300*time.Millisecond))
			now := epoch.Add(300 * time.Millisecond)
			resumed.Reconcile(now, throttle.Fact{Resumed: true})
			if s := resumed.State(now); s.Paused > 0 {
				t.Errorf("paused until %v later, want not paused", s.Paused)
			}
			left := 0
			for ; now < epoch.Add(3*time.Second); now += throttle.Instant(time.Millisecond) {
				got, _ := resumed.Take(now, throttle.Request{N: 1})
				want, _ := ended.Take(now, throttle.Request{N: 1})
				if (got.At <= now) != (want.At <= now) {
					t.Fatalf("Take at %v = %v, want %v", now.Sub(epoch), got.At.Sub(epoch), want.At.Sub(epoch))
				}
				if got.At <= now {
					left++
				}
			}
			if left < 20 {
				t.Errorf("%d left in 2.7s of 10/s, want 20 or more", left)
			}
		})
	}
}

// paused returns a limiter that is paused from the epoch until an instant.
func paused(l throttle.Limit, until throttle.Instant) throttle.Limiter {
	limiter := throttle.NewAt(l)
	limiter.Reconcile(epoch, throttle.Fact{Until: until})
	return limiter
}

// Permits charged in the pause stay charged, and without a pause Resumed changes nothing.
func TestResumedLimiterForgetsNoCharge(t *testing.T) {
	limiter := paused(throttle.TokenBucket(10, time.Second, 5), epoch.Add(time.Hour))
	limiter.Settle(epoch, throttle.Grant{At: epoch}, throttle.Request{}, throttle.Request{N: 20})
	resume := throttle.Fact{Resumed: true}
	limiter.Reconcile(epoch, resume)
	limiter.Reconcile(epoch, resume)
	if granted, _ := limiter.Take(epoch, throttle.Request{N: 1}); granted.At != epoch.Add(2*time.Second) {
		t.Errorf("Take after 20 were charged in the pause = %v, want 2s", granted.At.Sub(epoch))
	}
}
