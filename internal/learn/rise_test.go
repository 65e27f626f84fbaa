package learn

import (
	"testing"
	"time"
)

// A bucket's rate is measured from its level, without a refusal, whatever its reset means.
func TestSlopeIsTheVendorsRate(t *testing.T) {
	for _, reset := range []time.Duration{-1, 0, 5 * time.Millisecond, time.Second} {
		s := New(Setting{})
		level, at, filled := 20.0, begun, begun
		for n := int64(1); n <= 300; n++ {
			p := s.Plan(at, n-1)
			next := max(at.Add(time.Millisecond), p.Hold)
			if p.Rate > 0 {
				next = max(next, at.Add(time.Duration(1e9/p.Rate)))
			}
			level, at, filled = min(20, level+200*next.Sub(filled).Seconds()), next, next
			f := Fact{Departed: at, Landed: at.Add(2 * time.Millisecond), Ordinal: n, Granted: n, Flying: 1, Waited: true, Refused: level < 1}
			if !f.Refused {
				level--
			}
			q := minute(20, float64(int(level)))
			q.Reset, q.HasReset = max(reset, 0), reset >= 0
			f.Quotas = []Quota{q}
			if f.Refused {
				t.Fatalf("reset %v: call %d was refused: %v", reset, n, &s)
			}
			s.Observe(&f, f.Landed)
			at = max(at, f.Landed)
		}
		if got := s.Ceilings[0].Slope; got < 190 || got > 210 {
			t.Errorf("reset %v: after 300 calls the slope is %.1f/s, want 200: %v", reset, got, &s)
		}
	}
}

// A log of 20 in a second gives back what was spent a second before: its level rises as
// fast as calls were sent, once, and is no bucket's. A bucket of 20 that gains 10/s is one.
func TestALogIsNoBucket(t *testing.T) {
	for name, test := range map[string]struct {
		left func(sent []time.Duration, at time.Duration) float64
		last time.Duration
		want bool
	}{
		"log": {func(sent []time.Duration, at time.Duration) float64 {
			n := 0
			for _, s := range sent {
				if at-s < time.Second {
					n++
				}
			}
			return float64(20 - n)
		}, 1900 * time.Millisecond, false},
		"bucket": {func(sent []time.Duration, at time.Duration) float64 {
			level, last := 20.0, time.Duration(0)
			for _, s := range sent {
				level, last = min(20, level+10*(s-last).Seconds())-1, s
			}
			return float64(int(level))
		}, 6 * time.Second, true},
	} {
		s, sent := New(Setting{}), []time.Duration(nil)
		call := func(at time.Duration) {
			sent = append(sent, at)
			f := reports(int64(len(sent)), at, 20, test.left(sent, at))
			s = observed(s, f, f.Landed)
		}
		for i := range 16 { // spends nearly all at once
			call(time.Duration(i) * 5 * time.Millisecond)
		}
		rising := false
		for at := 200 * time.Millisecond; at < test.last; at += 200 * time.Millisecond {
			call(at)
			rising = rising || s.Ceilings[0].fills()
		}
		if rising != test.want {
			t.Errorf("the level of a %s is a bucket's: %v, want %v: %v", name, rising, test.want, &s)
		}
	}
}
