package throttle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func ExampleWithin() {
	fmt.Println(throttle.Within(100, time.Minute))
	fmt.Println(throttle.Within(5, time.Minute))
	// Output:
	// 90/m burst 8
	// log 5/1m1s
}

// A vendor that counts in any window of that length sees no more. Callers may depart on time or as
// late as a permit may be spent.
func TestWithinKeepsAnyWindow(t *testing.T) {
	for _, permits := range []int{1, 2, 5, 29, 30, 31, 59, 100, 101, 1_000, 20_000} {
		for _, window := range []time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour} {
			limit := throttle.Within(permits, window)
			if err := limit.Validate(); err != nil {
				t.Fatalf("Within(%d, %v) = %v: %v", permits, window, limit, err)
			}
			if most := mostWithin(t, limit, window); most > permits {
				t.Errorf("Within(%d, %v) = %v lets out %d", permits, window, limit, most)
			} else if most < permits*8/10 {
				t.Errorf("Within(%d, %v) = %v lets out %d alone", permits, window, limit, most)
			}
		}
	}
}

// mostWithin returns the most permits that leave in any span of that length. All that are
// due leave at once, on time and, from the second span on, as late as they may.
func mostWithin(t *testing.T, limit throttle.Limit, span time.Duration) (most int) {
	t.Helper()
	limiter := throttle.NewAt(limit)
	tolerance := throttle.Tolerance(limit)
	var left []throttle.Instant
	now := throttle.Instant(time.Hour)
	for end := now.Add(3 * span); now < end && len(left) < 100_000; {
		late := time.Duration(0)
		if len(left) > 0 && now < end.Add(-2*span) {
			late = tolerance
		}
		grant, err := limiter.Take(now.Add(late), throttle.Request{N: 1, Since: now})
		if err != nil {
			t.Fatal(err)
		}
		if grant.At > now.Add(late) {
			now = max(grant.At, now+1)
			continue
		}
		left = append(left, now.Add(late))
	}
	for first, last := 0, 0; last < len(left); last++ {
		for left[last].Sub(left[first]) >= span {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
