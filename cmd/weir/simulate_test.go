package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

const ms = time.Millisecond

// after returns the instants at these durations after midnight.
func after(all ...time.Duration) (instants []throttle.Instant) {
	midnight := throttle.InstantOf(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))
	for _, d := range all {
		instants = append(instants, midnight.Add(d))
	}
	return instants
}

func limits(t *testing.T, text string) []throttle.Limit {
	t.Helper()
	c, err := parseCandidate(text)
	if err != nil {
		t.Fatal(err)
	}
	return c.limits
}

func TestSimulate(t *testing.T) {
	for name, tt := range map[string]struct {
		limits   string
		arrivals []time.Duration
		maxWait  time.Duration
		waits    []time.Duration
		rejected int
		longest  int
	}{
		"below the limit":       {"10/s burst 2", []time.Duration{0, 0, 200 * ms}, 0, []time.Duration{0, 0, 0}, 0, 0},
		"a burst":               {"10/s burst 1", []time.Duration{0, 0, 0, 50 * ms}, 0, []time.Duration{0, 100 * ms, 200 * ms, 250 * ms}, 0, 3},
		"two limits":            {"10/s burst 1, fixed 2/s", []time.Duration{0, 0, 0}, 0, []time.Duration{0, 100 * ms, time.Second}, 0, 2},
		"rejected, not spent":   {"10/s burst 1", []time.Duration{0, 0, 0, 0, 100 * ms}, 100 * ms, []time.Duration{0, 100 * ms, 100 * ms}, 2, 1},
		"a window at midnight":  {"2/d fixed align day@UTC", []time.Duration{-time.Hour, 0, 0, time.Hour}, 0, []time.Duration{0, 0, 0, 23 * time.Hour}, 0, 1},
		"as long as is allowed": {"1/s burst 1", []time.Duration{0, 0}, time.Second, []time.Duration{0, time.Second}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := simulate(limits(t, tt.limits), after(tt.arrivals...), tt.maxWait)
			if err != nil || !slices.Equal(got.waits, tt.waits) || got.rejected != tt.rejected || got.longest != tt.longest {
				t.Errorf("simulate = waits %v, %d rejected, line %d, %v, want %v, %d, %d", got.waits, got.rejected, got.longest, err, tt.waits, tt.rejected, tt.longest)
			}
		})
	}
}

// The replay equals a real queue, at the same instants.
func TestSimulateAgreesWithAQueue(t *testing.T) {
	arrivals := []time.Duration{0, 0, 0, 10 * ms, 300 * ms, 300 * ms, 300 * ms, 301 * ms, 900 * ms, 2 * time.Second, 2 * time.Second, 2 * time.Second}
	for _, text := range []string{"10/s burst 2", "leaky 7/s", "20/s burst 1, fixed 4/s", "log 3/s", "sliding 5/s"} {
		for _, maxWait := range []time.Duration{0, 150 * ms} {
			synctest.Test(t, func(t *testing.T) {
				limiter, err := throttle.Local{}.Limiter("", limits(t, text)...)
				if err != nil {
					t.Fatal(err)
				}
				queue := shaping.NewQueue(limiter)
				queue.MaxWait = maxWait
				start := time.Now()
				var instants []throttle.Instant
				var departed []time.Duration
				var mu sync.Mutex
				var all sync.WaitGroup
				rejected := 0
				for i, at := range arrivals {
					instants = append(instants, throttle.InstantOf(start.Add(at)))
					all.Go(func() {
						time.Sleep(at + time.Duration(i)) // in order
						err := queue.Wait(context.Background())
						mu.Lock()
						defer mu.Unlock()
						if errors.Is(err, shaping.ErrDeadline) {
							rejected++
							return
						}
						departed = append(departed, time.Since(start))
					})
				}
				all.Wait()
				got, err := simulate(limits(t, text), instants, maxWait)
				if err != nil || got.rejected != rejected || len(got.departures) != len(departed) {
					t.Fatalf("%s, %v: simulate = %d departures, %d rejected, %v, want %d and %d", text, maxWait, len(got.departures), got.rejected, err, len(departed), rejected)
				}
				for i, at := range got.departures {
					if d := at.Sub(instants[0]); (d - departed[i]).Abs() > ms {
						t.Errorf("%s, %v: call %d departed after %v, want %v as in a queue", text, maxWait, i, d, departed[i])
					}
				}
			})
		}
	}
}

func TestPeakAndQuantile(t *testing.T) {
	if got := peak(after(0, 999*ms, time.Second, 1500*ms, 5*time.Second), time.Second); got != 3 {
		t.Errorf("peak = %d, want 3: of 999 ms to 1.5 s", got)
	}
	waits := []time.Duration{1, 2, 3, 4}
	if a, b, c := quantile(waits, 0.5), quantile(waits, 0.99), quantile(nil, 0.5); a != 2 || b != 4 || c != 0 {
		t.Errorf("quantile = %d, %d, %d, want 2, 4, 0", a, b, c)
	}
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	if got := quantile(hundred, 0.99); got != 99 {
		t.Errorf("quantile = %d, want 99: one of the hundred waits is longer", got)
	}
}

func TestLimitsThatAreWrongAreNamed(t *testing.T) {
	for _, text := range []string{"", "10/q", "10/s, ", "10/s name a, 5/s name a"} {
		if _, err := parseCandidate(text); err == nil {
			t.Errorf("parseCandidate(%q) = nil, want an error", text)
		}
	}
}

// Waits beyond the last instant are no waits until then.
func TestSimulateEndsWithTime(t *testing.T) {
	for _, text := range []string{"1/31d", "log 1/31d", "1/31d fixed"} {
		if o, err := simulate(limits(t, text), after(make([]time.Duration, 3000)...), 0); err == nil || !strings.Contains(err.Error(), "after the year 2262") {
			t.Errorf("%s: simulate of 3000 calls = %d departures, %v, want an error", text, len(o.departures), err)
		}
	}
}
