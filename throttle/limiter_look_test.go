package throttle_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Reading the state, a forecast or a probe changes nothing: the limiter decides as if not read.
func TestLookAheadMovesNothing(t *testing.T) {
	first := aligned(throttle.FixedWindow(10, time.Second), throttle.AlignFirstUse)
	for _, limits := range [][]throttle.Limit{
		{throttle.TokenBucket(10, time.Second, 5)}, {throttle.LeakyBucket(7, time.Second)}, {throttle.FixedWindow(10, time.Second)}, {first},
		{throttle.SlidingLog(10, time.Second)}, {throttle.SlidingWindow(10, time.Second)},
		{throttle.TokenBucket(10, time.Second, 5), throttle.FixedWindow(20, time.Minute)},
	} {
		looked, left := throttle.NewAt(limits...), throttle.NewAt(limits...)
		granted := 0
		for now := epoch; now < epoch.Add(3*time.Second); now = now.Add(30 * time.Millisecond) {
			look(t, looked, now.Add(time.Hour))
			got, _ := looked.Take(now, throttle.Request{N: 1})
			want, _ := left.Take(now, throttle.Request{N: 1})
			if got.At != want.At {
				t.Fatalf("%v: Take at %v after looks an hour ahead = %v, want %v", limits, now.Sub(epoch), got.At.Sub(epoch), want.At.Sub(epoch))
			}
			if got.At <= now {
				granted++
			}
		}
		if granted < 20 {
			t.Errorf("%v: %d left, want 20 or more", limits, granted)
		}
	}
}

func look(t *testing.T, l throttle.Limiter, ahead throttle.Instant) {
	t.Helper()
	if s := l.State(ahead); !s.Whole {
		t.Errorf("an hour ahead the state is %+v, want a whole one", s)
	}
	if f := l.Forecast(ahead, throttle.Request{N: 1}); f.At > ahead {
		t.Errorf("an hour ahead the forecast is %v more", f.At.Sub(ahead))
	}
	if granted, err := l.Take(ahead, throttle.Request{}); granted.At > ahead || err != nil {
		t.Errorf("an hour ahead a probe waits %v more, %v", granted.At.Sub(ahead), err)
	}
}
