package backoff

import (
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	cenkalti "github.com/cenkalti/backoff/v4"
	"pgregory.net/rapid"
)

// bound is min(limit, base x 2^(retry-1)) in floating point, which cannot
// overflow.
func bound(base, limit time.Duration, retry int) float64 {
	return max(0, min(float64(limit), float64(base)*math.Pow(2, float64(retry-1))))
}

func TestFullJitterStaysInItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, int64(time.Minute)))
		base := time.Duration(duration.Draw(t, "base"))
		limit := time.Duration(duration.Draw(t, "cap"))
		retry := rapid.OneOf(rapid.IntRange(1, 70), rapid.IntRange(1, math.MaxInt)).Draw(t, "retry")
		if d := fullJitter(base, limit, retry); d < 0 || float64(d) > bound(base, limit, retry) {
			t.Fatalf("fullJitter(%d, %d, %d) = %d, want at most %g", base, limit, retry, d, bound(base, limit, retry))
		}
	})
}

func TestFullJitterIsUniform(t *testing.T) {
	const n, step = 8000, 100 * time.Millisecond
	var counts [8]int
	for range n {
		counts[min(fullJitter(step, time.Hour, 4)/step, 7)]++
	}
	for i, got := range counts {
		if got < n/8*8/10 || got > n/8*12/10 {
			t.Errorf("%d of %d delays in [%v, %v), want about %d", got, n, time.Duration(i)*step, time.Duration(i+1)*step, n/8)
		}
	}
}

func TestFullJitterReachesBothEnds(t *testing.T) {
	var seen [4]bool
	for range 1000 {
		seen[fullJitter(3, time.Hour, 1)] = true
	}
	if seen != [4]bool{true, true, true, true} {
		t.Errorf("delays of [0, 3] seen: %v", seen)
	}
}

func TestDelayIsTheOneSet(t *testing.T) {
	doubling := func() cenkalti.BackOff {
		return cenkalti.NewExponentialBackOff(
			cenkalti.WithInitialInterval(time.Second), cenkalti.WithMultiplier(2), cenkalti.WithRandomizationFactor(0))
	}
	literal := func() cenkalti.BackOff {
		return &cenkalti.ExponentialBackOff{InitialInterval: time.Second, Multiplier: 2, MaxInterval: time.Minute, Stop: cenkalti.Stop, Clock: cenkalti.SystemClock}
	}
	resp := new(http.Response)
	byResponse := func(minimum, maximum time.Duration, attemptNum int, r *http.Response) time.Duration {
		if minimum != time.Second || maximum != time.Minute || attemptNum != 2 || r != resp {
			t.Errorf("Backoff(%v, %v, %d, %v), want 1s, 1m0s, 2, the response", minimum, maximum, attemptNum, r)
		}
		return -1
	}
	tests := []struct {
		name  string
		delay Delay
		want  time.Duration
	}{
		{"a function", func(retry int, r *http.Response) (time.Duration, bool) { return time.Duration(retry), r == resp }, 3},
		{"cenkalti's", FromBackOff(doubling), 4 * time.Second},
		{"cenkalti's, without its constructor", FromBackOff(literal), 4 * time.Second},
		{"go-retryablehttp's, negative", FromRetryable(byResponse, time.Second, time.Minute), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &Policy{Delay: tt.delay}
			for range 2 { // requests are independent
				if d, ok := p.delay(3, resp); d != tt.want || !ok {
					t.Errorf("delay(3) = %v, %v, want %v", d, ok, tt.want)
				}
			}
		})
	}
}

func TestFromBackOffKeepsTheBoundOfEachDelay(t *testing.T) {
	delay := FromBackOff(func() cenkalti.BackOff {
		return cenkalti.NewExponentialBackOff(cenkalti.WithInitialInterval(2*time.Second), cenkalti.WithRandomizationFactor(0),
			cenkalti.WithMultiplier(2), cenkalti.WithMaxElapsedTime(5*time.Second))
	})
	for retry, want := range []time.Duration{0, 2 * time.Second, 4 * time.Second, 0} {
		if d, ok := delay(retry, nil); d != want || ok != (retry < 3) {
			t.Errorf("delay(%d) = %v, %v, want %v", retry, d, ok, want)
		}
	}
}

func TestNilDelayIsFullJitterOfTheDefaults(t *testing.T) {
	for retry, bound := range map[int]time.Duration{1: DefaultBase, 3: 4 * DefaultBase, 50: DefaultCap} {
		var longest time.Duration
		for range 1000 {
			d, ok := new(Policy).delay(retry, nil)
			if !ok || d < 0 || d > bound {
				t.Fatalf("delay(%d) = %v, %v, want at most %v", retry, d, ok, bound)
			}
			longest = max(longest, d)
		}
		if longest < bound*9/10 { // 0.9^1000 of all runs
			t.Errorf("longest delay(%d) = %v, want near %v", retry, longest, bound)
		}
	}
}

func TestBackOffEndsAfterTheLastRetry(t *testing.T) {
	p := &Policy{Attempts: 3, Delay: func(retry int, _ *http.Response) (time.Duration, bool) {
		return time.Duration(retry) * time.Second, true
	}}
	b := p.BackOff()
	for range 2 {
		var got []time.Duration
		for range 4 {
			got = append(got, b.NextBackOff())
		}
		if want := []time.Duration{time.Second, 2 * time.Second, cenkalti.Stop, cenkalti.Stop}; !slices.Equal(got, want) {
			t.Errorf("delays %v, want %v", got, want)
		}
		b.Reset()
	}
	if d := None.BackOff().NextBackOff(); d != cenkalti.Stop {
		t.Errorf("first delay of None = %v, want Stop", d)
	}
	if d := (*Policy)(nil).BackOff().NextBackOff(); d < 0 || d > DefaultBase {
		t.Errorf("first delay of nil = %v, want at most %v", d, DefaultBase)
	}
}

func TestBackOffServesCenkaltisRetry(t *testing.T) {
	p := &Policy{Attempts: 3, Delay: Constant(0)}
	calls := 0
	err := cenkalti.Retry(func() error { calls++; return http.ErrServerClosed }, p.BackOff())
	if calls != 3 || err != http.ErrServerClosed {
		t.Errorf("%d calls, %v, want 3 and the last error", calls, err)
	}
}
