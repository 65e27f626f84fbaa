package throttle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestCapacityLeavesOutWhatIsKept(t *testing.T) {
	for text, want := range map[string]int{
		"100/s burst 50 keep 20%": 40, "100/s keep 20%": 1, "leaky 100/s keep 20%": 1, "fixed 100/s keep 20": 80, "log 100/s": 100,
	} {
		l, err := throttle.ParseLimit(text)
		if got := l.Capacity(); err != nil || got != want || l.Check(got) != nil {
			t.Errorf("Capacity of %s = %d, %v, want %d that can be granted", text, got, err, want)
		}
	}
}

func TestInvalidLimitHasNoWindow(t *testing.T) {
	if start, end := throttle.FixedWindow(1, 0).Window(time.Now()); !start.IsZero() || !end.IsZero() {
		t.Errorf("Window = %v, %v, want none", start, end)
	}
}

func TestCheckFindsWhatIsNeverGranted(t *testing.T) {
	for _, test := range []struct {
		limit throttle.Limit
		most  int
	}{
		{throttle.TokenBucket(100, time.Second, 7), 7},
		{throttle.GCRA(100, time.Second, 7), 7},
		{throttle.FixedWindow(100, time.Second), 100},
		{throttle.SlidingLog(100, time.Second), 100},
		{throttle.SlidingWindow(100, time.Second), 100},
	} {
		for _, n := range []int{0, 1, test.most} {
			if err := test.limit.Check(n); err != nil {
				t.Errorf("%v: Check(%d) = %v", test.limit, n, err)
			}
			if _, err := throttle.NewAt(test.limit).Take(0, throttle.Request{N: n}); err != nil {
				t.Errorf("%v: Take of %d = %v", test.limit, n, err)
			}
		}
		if err := test.limit.Check(test.most + 1); !errors.Is(err, throttle.ErrExceedsBurst) {
			t.Errorf("%v: Check(%d) = %v, want %v", test.limit, test.most+1, err, throttle.ErrExceedsBurst)
		}
		if err := test.limit.Check(-1); err == nil || errors.Is(err, throttle.ErrExceedsBurst) {
			t.Errorf("%v: Check(-1) = %v, want an error of its own", test.limit, err)
		}
	}
}
