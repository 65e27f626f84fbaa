package throttle_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
	"pgregory.net/rapid"
)

// A past is what happened to a limiter, so that another can live it again.
type past struct {
	limits  []throttle.Limit
	happens []func(l throttle.Limiter)
}

// again returns a limiter that has lived it all.
func (p *past) again() throttle.Limiter {
	l := throttle.NewAt(p.limits...)
	for _, happen := range p.happens {
		happen(l)
	}
	return l
}

// drawLimit draws a limit of any algorithm that grants at least five at once.
func drawLimit(t *rapid.T) throttle.Limit {
	permits := rapid.IntRange(5, 20).Draw(t, "permits")
	per := rapid.SampledFrom([]time.Duration{10 * time.Millisecond, time.Second, 7 * time.Second}).Draw(t, "per")
	l := []throttle.Limit{
		throttle.TokenBucket(permits, per, rapid.IntRange(5, 10).Draw(t, "burst")), throttle.LeakyBucket(permits, per),
		throttle.FixedWindow(permits, per), throttle.SlidingLog(permits, per), throttle.SlidingWindow(permits, per),
	}[rapid.IntRange(0, 4).Draw(t, "algorithm")]
	if l.Algorithm == throttle.AlgorithmFixedWindow && rapid.Bool().Draw(t, "first use") {
		l.Align = throttle.AlignFirstUse
	}
	return l
}

func drawLimits(t *rapid.T) []throttle.Limit {
	limits := make([]throttle.Limit, rapid.IntRange(1, 3).Draw(t, "limits"))
	for i := range limits {
		limits[i] = drawLimit(t)
	}
	return limits
}

// Overtake decides by what really follows: of a limiter that has lived the same,
// the forecast of the head moves by the delay if r is taken.
func TestOvertakeCostsTheHeadWhatItSays(t *testing.T) {
	granted, held := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := &past{limits: drawLimits(t)}
		l, now := p.again(), epoch
		lives := func(happen func(l throttle.Limiter)) {
			p.happens = append(p.happens, happen)
			happen(l)
		}
		draw := func(what string) throttle.Request {
			r := throttle.Request{N: rapid.IntRange(1, 5).Draw(t, what), Since: now.Add(-time.Duration(rapid.IntRange(0, 30).Draw(t, "waited")) * time.Millisecond)}
			if rapid.Bool().Draw(t, "each") {
				r.Each = []int{rapid.IntRange(0, 5).Draw(t, "of the first limit")}
			}
			return r
		}
		var at throttle.Instant
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "later")) * time.Millisecond / time.Duration(rapid.SampledFrom([]int{1, 100}).Draw(t, "part")))
			then, was := now, at
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				limits := drawLimits(t)
				lives(func(l throttle.Limiter) { _ = l.Tune(then, limits...) })
			case 1:
				until := now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "pause")) * time.Millisecond)
				lives(func(l throttle.Limiter) { l.Reconcile(then, throttle.Fact{Until: until}) })
			case 2:
				lives(func(l throttle.Limiter) { l.Refund(then, was, throttle.Request{N: 1}) })
			case 3:
				lives(func(l throttle.Limiter) { l.Settle(then, was, throttle.Request{N: 1}, throttle.Request{N: 3}) })
			case 4, 5:
				r := draw("taken")
				if got, _ := l.Take(now, r); got <= now {
					at = got
				}
				p.happens = append(p.happens, func(l throttle.Limiter) { _, _ = l.Take(then, r) })
			default:
				r, head := draw("overtaking"), draw("head")
				other := p.again()
				before := max(other.Forecast(now, head).At, now)
				want, err := other.Take(now, r)
				delay := max(other.Forecast(now, head).At, now).Sub(before)
				most := rapid.SampledFrom([]time.Duration{0, 1, time.Millisecond, 100 * time.Millisecond, time.Second, delay, delay - 1}).Draw(t, "most")
				if err == nil && want <= now && delay > most {
					want, delay, other = throttle.Never, 0, p.again()
					held++
				} else if want > now {
					delay = 0
				}
				got, gotDelay, gotErr := l.(throttle.Overtaker).Overtake(now, r, head, most)
				if got != want || gotDelay != delay || (gotErr == nil) != (err == nil) {
					t.Fatalf("Overtake(%+v, %+v, %v) = %v, %v, %v, want %v, %v, %v", r, head, most, got.Sub(now), gotDelay, gotErr, want.Sub(now), delay, err)
				}
				if state, left := l.State(now), other.State(now); !reflect.DeepEqual(state, left) {
					t.Fatalf("after Overtake the state is %+v, want %+v", state, left)
				}
				if got <= now {
					granted, at = granted+1, got
					p.happens = append(p.happens, func(l throttle.Limiter) { _, _ = l.Take(then, r) })
				}
			}
		}
	})
	if granted < 3 || held < 3 { // chance decides how many, and -short draws a fifth
		t.Errorf("%d overtook and %d were held for the head's sake, want some of each", granted, held)
	}
}

// What a function charges nobody else knows.
func TestFunctionLetsNobodyOvertake(t *testing.T) {
	limiter := throttle.LimiterFunc(func(now throttle.Instant, _ throttle.Request) (throttle.Instant, error) { return now, nil })
	if _, ok := limiter.(throttle.Overtaker); ok {
		t.Error("the limiter of a function is an Overtaker")
	}
}
