package sim

import (
	"testing"
	"time"
)

// Vendors whose answers take seconds, as those of language models do, are used as others are: calls
// in flight, or held back by a reported quota, are no silence of the callers, and a probe has passed if a refusal of
// it would have come by now. Calls in flight rise with the rate, and are no bound of their own.
func TestSlowAnswersUseTheLimit(t *testing.T) {
	t.Parallel()
	openAI := Style{Quotas: Tightest, Retry: Millis}
	for _, r := range []struct {
		rule  Rule
		style Style
		slow  time.Duration
		least float64 // of ten minutes of the limit
	}{
		{bucket(10, time.Second, 20), Bare, 2500 * time.Millisecond, 0.9},
		{bucket(10, time.Second, 20), RetrySecs, 5 * time.Second, 0.95},
		{bucket(3, time.Second, 3), Bare, 5 * time.Second, 0.85},
		{bucket(20, time.Second, 5), Bare, 5 * time.Second, 0.85},
		{bucket(50, time.Second, 10), Bare, 1200 * time.Millisecond, 0.9},
		{bucket(10, time.Second, 20), Bare, 15 * time.Second, 0.9},
		{Rule{Kind: Flight, Permits: 12}, Bare, 5 * time.Second, 0.9},
		{Rule{Kind: Fixed, Permits: 5, Per: time.Second}, RetrySecs, 5 * time.Second, 0.9},
		{Rule{Kind: Log, Permits: 100, Per: 10 * time.Second}, RetrySecs, 2500 * time.Millisecond, 0.9},
		{bucket(500, time.Minute, 8), openAI, 5 * time.Second, 0.85},
		{bucket(500, time.Minute, 20), openAI, 15 * time.Second, 0.85},
		{bucket(200, time.Minute, 10), openAI, 5 * time.Second, 0.9},
	} {
		for seed := range uint64(3) {
			s := base(vendor(r.rule), r.style).over(3*time.Minute, 13*time.Minute)
			rate := r.rule.PerSecond()
			if r.rule.Kind == Flight {
				rate = float64(r.rule.Permits) / (1.25 * r.slow.Seconds())
			}
			s.Service, s.ServiceTo, s.Workers = r.slow, r.slow*3/2, int(2.5*rate*r.slow.Seconds())
			if used := float64(Run(s, seed+1).Served) / (rate * 600); used < r.least {
				t.Errorf("%v, answers after %v, seed %d: %.2f used, want %v at least", r.rule, r.slow, seed+1, used, r.least)
			}
		}
	}
}
