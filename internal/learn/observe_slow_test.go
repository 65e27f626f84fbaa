package learn_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// A lane with few calls is not held for longer than a busy one.
func TestAQuietLaneIsNotHeldForLong(t *testing.T) {
	s := learn.New(learn.Setting{Configured: 100, Burst: 10})
	for n := range int64(40) {
		f := learn.Fact{Ordinal: n + 1, Granted: n + 1, Flying: 1, Departed: at(float64(n) * 60)}
		f.Landed = f.Departed.Add(5 * time.Millisecond)
		if n == 39 {
			f.Refused = true
		}
		s.Observe(&f, f.Landed)
	}
	now := at(39 * 60)
	if hold := s.Plan(now, 40).Hold.Sub(now); hold > time.Second {
		t.Errorf("after the refusal, no departure for %v", hold)
	}
	f := learn.Fact{Ordinal: 41, Granted: 41, Flying: 1, Departed: at(39*60 + 1), Landed: at(39*60 + 1.005)}
	s.Observe(&f, f.Landed)
	if hold := s.Plan(f.Landed, 41).Hold.Sub(f.Landed); hold > time.Second {
		t.Errorf("after a served call, no departure for %v", hold)
	}
}

// An hour without calls begins with a served call, or with a refused call that gave up. Afterwards
// the rate recovers within seconds, and a doubled limit is found. The same if little was learned
// before, or if others have just emptied the bucket.
func TestAnHourWithoutCallsSlowsNothing(t *testing.T) {
	for _, learned := range []float64{0.02, 0.1, 2, 60} {
		for _, gaveUp := range []bool{false, true} {
			for _, tokens := range []float64{0, burst} {
				known, c := run(learn.New(learn.Setting{}), 50, learned, 1e6)
				if gaveUp {
					f := learn.Fact{Departed: c.at[len(c.at)-1].Add(20 * time.Millisecond), Flying: 1, Waited: true, Refused: true}
					f.Landed, f.Ordinal, f.Granted = f.Departed.Add(5*time.Millisecond), known.Last.Ordinal+1, known.Last.Ordinal+1
					known = feed(known, f)
				}
				from := 3600 + learned
				s, c := runFrom(known, from, tokens, 50, 15, 1e6)
				if n := c.after(from+5, 10); n < 400 || c.refused > 20 {
					t.Errorf("known for %v s, gave up %v, %v tokens: in ten seconds at 50/s %d were served, in fifteen %d refused: %+v", learned, gaveUp, tokens, n, c.refused, &s)
				}
				s, c = runFrom(known, from, tokens, 100, 60, 1e6)
				if n := c.after(from+50, 10); n < 850 {
					t.Errorf("known for %v s, gave up %v, %v tokens: in ten seconds at 100/s %d were served: %+v", learned, gaveUp, tokens, n, &s)
				}
			}
		}
	}
}

// A caller that rests for three seconds after each refusal still measures the vendor's rate. One
// that comes every two seconds to a vendor that refuses everything is a probe, ever more seldom.
func TestARestAfterARefusalIsMeasured(t *testing.T) {
	known, _ := run(learn.New(learn.Setting{}), 50, 60, 1e6)
	s, from, tokens := known, 63.0, float64(burst)
	for from < 363 {
		var c course
		before := s.Last.Ordinal
		for calls := 1; c.refused == 0 && from < 363; calls++ {
			left := from
			s, c = runFrom(s, left, tokens, 50, 1e6, 1)
			tokens -= float64(c.served)
			from = max(left+0.005, s.Plan(at(left+0.005), s.Last.Ordinal).Hold.Sub(at(0)).Seconds())
			if rate := s.Plan(at(from), s.Last.Ordinal).Rate; rate > 0 {
				from = max(from, left+1/rate)
			}
			tokens = min(burst, tokens+50*(from-left))
		}
		if s.Last.Ordinal == before {
			t.Fatal("no departure")
		}
		from, tokens = from+3, burst
	}
	if s.W < 40 {
		t.Errorf("of 50/s %.1f/s are known: %+v", s.W, &s)
	}
	refused := 0
	for second := 400.0; second < 4000; second += 2 {
		if s.Plan(at(second), s.Last.Ordinal).Hold > at(second) {
			continue
		}
		f := learn.Fact{Departed: at(second), Landed: at(second + 0.005), Ordinal: s.Last.Ordinal + 1, Granted: s.Last.Ordinal + 1, Flying: 1, Waited: true, Refused: true}
		s = feed(s, f)
		refused++
	}
	if refused > 60 {
		t.Errorf("a vendor that refuses all was asked %d times in an hour", refused)
	}
}
