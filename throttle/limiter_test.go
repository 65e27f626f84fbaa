package throttle_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestInstantsSaturate(t *testing.T) {
	const first = throttle.Instant(math.MinInt64 + 1)
	for _, c := range []struct {
		i    throttle.Instant
		d    time.Duration
		want throttle.Instant
	}{
		{5, -7, -2},
		{throttle.Never - 1, 1, throttle.Never},
		{throttle.Never - 1, time.Hour, throttle.Never},
		{first, -time.Hour, first},
	} {
		if got := c.i.Add(c.d); got != c.want {
			t.Errorf("%d.Add(%d) = %d, want %d", c.i, c.d, got, c.want)
		}
	}
	for _, c := range []struct {
		i, j throttle.Instant
		want time.Duration
	}{
		{5, 7, -2},
		{throttle.Never, first, math.MaxInt64},
		{first, throttle.Never, math.MinInt64},
	} {
		if got := c.i.Sub(c.j); got != c.want {
			t.Errorf("%d.Sub(%d) = %d, want %d", c.i, c.j, got, c.want)
		}
	}
}

// The largest valid numbers grant no more than others.
func TestHugeLimitsDoNotOverflow(t *testing.T) {
	for _, per := range []time.Duration{1, time.Second, math.MaxInt64/2 + 5, math.MaxInt64} {
		for _, permits := range []int{1, 2, math.MaxInt / 2, math.MaxInt - 1, math.MaxInt} {
			for _, l := range []throttle.Limit{
				throttle.TokenBucket(permits, per, permits), throttle.TokenBucket(1, per, permits), throttle.LeakyBucket(permits, per),
				throttle.FixedWindow(permits, per), throttle.SlidingLog(permits, per), throttle.SlidingWindow(permits, per),
			} {
				limiter := throttle.NewAt(l)
				if granted, err := limiter.Take(epoch, throttle.Request{N: permits}); granted.At > epoch || err != nil {
					t.Errorf("%v: Take of all = %d, %v, want now", l, granted.At, err)
				}
				for range 4 {
					granted, err := limiter.Take(epoch, throttle.Request{N: 1})
					if l.Algorithm != throttle.AlgorithmLeakyBucket && granted.At <= epoch || err != nil {
						t.Errorf("%v: Take of one more = %d, %v, want a wait", l, granted.At, err)
					}
					limiter.Settle(epoch, throttle.Grant{At: epoch}, throttle.Request{}, throttle.Request{N: math.MaxInt})
				}
				if s := limiter.State(epoch).Limits[0]; s.Headroom > 0 || s.Utilization < 0 {
					t.Errorf("%v: after all and more the state is %+v", l, s)
				}
			}
		}
	}
}

// An overspend may exceed what all windows since could pay.
func TestDebtOfManyWindowsDoesNotOverflow(t *testing.T) {
	l := throttle.NewAt(throttle.FixedWindow(1_000_000_000, 1))
	l.Settle(epoch, throttle.Grant{At: epoch}, throttle.Request{}, throttle.Request{N: 2_000_000_001})
	if granted, _ := l.Take(epoch, throttle.Request{N: 1}); granted.At != epoch+2 {
		t.Errorf("Take at once = %d, want 2", granted.At-epoch)
	}
	now := epoch.Add(20 * time.Second)
	if granted, _ := l.Take(now, throttle.Request{N: 1}); granted.At > now {
		t.Errorf("Take after 20 s = %d more, want now", granted.At-now)
	}
}

func TestForecastNamesTheReason(t *testing.T) {
	l := throttle.NewAt(throttle.TokenBucket(10, time.Second, 1), throttle.FixedWindow(1, time.Hour))
	forecast := func(want throttle.Forecast) {
		t.Helper()
		if got := l.Forecast(epoch, throttle.Request{N: 1}); got != want {
			t.Errorf("Forecast = %+v, want %+v", got, want)
		}
	}
	_, _ = l.Take(epoch, throttle.Request{Each: []int{1, 0}})
	forecast(throttle.Forecast{At: epoch.Add(100 * time.Millisecond), Limit: "requests-0", Reason: throttle.ReasonRate})
	_, _ = l.Take(epoch, throttle.Request{Each: []int{0, 1}})
	hour := throttle.Instant(time.Hour)
	forecast(throttle.Forecast{At: epoch/hour*hour + hour, Limit: "requests-long-0", Reason: throttle.ReasonRate})
	until := epoch.Add(3 * time.Hour)
	l.Reconcile(epoch, throttle.Fact{Until: until})
	forecast(throttle.Forecast{At: until, Reason: throttle.ReasonPause})
}

func TestToleranceIsTwoIntervalsWithinItsBounds(t *testing.T) {
	for _, c := range []struct {
		limit throttle.Limit
		want  time.Duration
	}{
		{throttle.LeakyBucket(1000, time.Second), 10 * time.Millisecond},
		{throttle.LeakyBucket(100, time.Second), 20 * time.Millisecond},
		{throttle.LeakyBucket(1, time.Hour), 100 * time.Millisecond},
		{throttle.LeakyBucket(1, math.MaxInt64), 100 * time.Millisecond},
	} {
		if got := throttle.NewAt(c.limit).Tolerance(); got != c.want {
			t.Errorf("%v: Tolerance() = %v, want %v", c.limit, got, c.want)
		}
	}
	both := []throttle.Limit{throttle.LeakyBucket(1, time.Hour), throttle.LeakyBucket(100, time.Second)}
	if got, want := throttle.Tolerance(both...), throttle.NewAt(both...).Tolerance(); got != want || got != 20*time.Millisecond {
		t.Errorf("Tolerance of both = %v, a limiter's %v, want 20ms", got, want)
	}
	if got, want := throttle.Tolerance(), throttle.NewAt().Tolerance(); got != want || got != 100*time.Millisecond {
		t.Errorf("Tolerance of no limits = %v, a limiter's %v, want 100ms", got, want)
	}
	if got := throttle.Tolerance(throttle.Limit{Per: time.Millisecond}); got != 10*time.Millisecond {
		t.Errorf("Tolerance of a limit that does not validate = %v, want the least, 10ms", got)
	}
}

func TestWindowsLieOnMultiplesBeforeTheEpochToo(t *testing.T) {
	l := throttle.NewAt(throttle.FixedWindow(1, time.Second))
	for i, want := range []throttle.Instant{-1_500_000_000, -1_000_000_000} {
		if granted, _ := l.Take(-1_500_000_000, throttle.Request{N: 1}); granted.At != want {
			t.Errorf("permit %d = %d, want %d", i+1, granted.At, want)
		}
	}
}

// A caller behind others learns that waiting is useless.
func TestForecastOfWhatIsNeverGrantedIsNever(t *testing.T) {
	limiter, err := throttle.Local{}.Limiter("", throttle.TokenBucket(10, time.Second, 5))
	if err != nil {
		t.Fatal(err)
	}
	now := throttle.InstantOf(time.Unix(1, 0))
	if f := limiter.Forecast(now, throttle.Request{N: 6}); f.At != throttle.Never {
		t.Errorf("Forecast(6 of a burst of 5).At = %v, want Never", f.At)
	}
}

// An invalid number delays a limit for years, not forever.
func TestNoLimitEndsAtNever(t *testing.T) {
	for _, l := range []throttle.Limit{
		throttle.TokenBucket(10, time.Second, 5), throttle.LeakyBucket(1, time.Hour), throttle.FixedWindow(10, time.Second),
		aligned(throttle.FixedWindow(10, time.Second), throttle.AlignFirstUse), throttle.SlidingLog(10, time.Second), throttle.SlidingWindow(10, time.Second),
	} {
		limiter := throttle.NewAt(l)
		for range 3 {
			limiter.Settle(epoch, throttle.Grant{At: epoch}, throttle.Request{}, throttle.Request{N: math.MaxInt})
		}
		granted, err := limiter.Take(epoch, throttle.Request{N: 1})
		if granted.At <= epoch || granted.At > epoch.Add(5*365*24*time.Hour) || err != nil {
			t.Errorf("%v: after the greatest overspend Take = %v later, %v, want within five years", l, granted.At.Sub(epoch), err)
		}
		if got, _ := limiter.Take(granted.At, throttle.Request{N: 1}); got.At > granted.At {
			t.Errorf("%v: asked for %v, and then %v more", l, granted.At.Sub(epoch), got.At.Sub(granted.At))
		}
	}
	// A leaky bucket's largest cost may take longer than an Instant can express.
	limiter := throttle.NewAt(throttle.LeakyBucket(1, time.Hour))
	_, _ = limiter.Take(epoch, throttle.Request{N: math.MaxInt})
	if granted, err := limiter.Take(epoch, throttle.Request{N: 1}); granted.At <= epoch || granted.At == throttle.Never || err != nil {
		t.Errorf("Take after all that can be counted = %d, %v, want the last instant", granted.At, err)
	}
}

// A window does not count a permit that was never used, however late it is returned.
func TestWindowsStopCountingPermitsThatComeBackLate(t *testing.T) {
	ten := throttle.Request{N: 10}
	for _, limit := range []throttle.Limit{
		throttle.FixedWindow(10, 100*time.Millisecond), throttle.SlidingLog(10, 100*time.Millisecond), throttle.SlidingWindow(10, 100*time.Millisecond),
	} {
		l := throttle.NewAt(limit)
		g, _ := l.Take(epoch, ten)
		now := epoch.Add(50 * time.Millisecond) // the tolerance is 20 ms
		l.Refund(now, g, ten)
		if again, err := l.Take(now, ten); err != nil || again.At > now {
			t.Errorf("%v: Take of all after a late Refund of all = %v, %v, want now", limit, again.At.Sub(now), err)
		}
	}
}

// A caller in line since then is dated as Take dates it.
func TestForecastIsTheInstantOfTake(t *testing.T) {
	for _, limit := range []throttle.Limit{throttle.TokenBucket(10, time.Second, 1), throttle.LeakyBucket(10, time.Second)} {
		for _, stood := range []time.Duration{0, time.Millisecond, time.Second} {
			l := throttle.NewAt(limit)
			_, _ = l.Take(epoch, throttle.Request{N: 1})
			now := epoch.Add(150 * time.Millisecond)
			r := throttle.Request{N: 1, Since: now.Add(-stood)}
			f := l.Forecast(now, r)
			if granted, err := l.Take(now, r); err != nil || granted.At != f.At {
				t.Errorf("%v, in line for %v: Forecast is at %v, Take at %v, %v", limit, stood, f.At.Sub(epoch), granted.At.Sub(epoch), err)
			}
		}
	}
}
