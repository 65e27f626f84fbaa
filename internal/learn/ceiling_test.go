package learn

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A flown is a call to a vendor whose quota is a bucket, or a window if it gains nothing.
type flown struct {
	fact    Fact
	arrives time.Duration
	left    float64
}

// begun is when the histories begin.
const begun throttle.Instant = 1_700_000_000_000_000_000

// fly lets calls leave one after another, each a random time after the one before, takes
// them to a vendor of so many permits that gains so many each second, in the order in which
// they arrive, and returns them in the order in which their answers come.
func fly(rng *rand.Rand, calls int, burst, gain float64) []flown {
	all := make([]flown, calls)
	at := time.Duration(0)
	for i := range all {
		at += time.Duration(rng.IntN(3e6))
		all[i].fact = Fact{Departed: begun.Add(at), Ordinal: int64(i + 1), Waited: true}
		all[i].arrives = at + time.Duration(rng.IntN(20e6))
	}
	byArrival := make([]*flown, calls)
	for i := range all {
		byArrival[i] = &all[i]
	}
	slices.SortFunc(byArrival, func(a, b *flown) int { return int(a.arrives - b.arrives) })
	level, last := burst, time.Duration(0)
	for _, c := range byArrival {
		level, last = min(burst, level+gain*(c.arrives-last).Seconds()), c.arrives
		if c.fact.Refused = level < 1; !c.fact.Refused {
			level--
		}
		c.left = level
		c.fact.Landed = begun.Add(c.arrives + time.Duration(rng.IntN(20e6)))
	}
	landed := func(at throttle.Instant) (n int) {
		for i := range all {
			if all[i].fact.Landed < at {
				n++
			}
		}
		return n
	}
	for i := range all {
		c := &all[i]
		c.fact.Flying = i + 1 - landed(c.fact.Departed)
		for k := range all {
			if all[k].fact.Departed <= c.fact.Landed {
				c.fact.Granted = all[k].fact.Ordinal
			}
		}
		c.fact.Answered = int64(1 + landed(c.fact.Landed))
		c.fact.Quotas = []Quota{{Limit: burst, HasLimit: true, Remaining: float64(int(c.left)), HasRemaining: true}}
	}
	slices.SortFunc(all, func(a, b flown) int { return int(a.fact.Landed - b.fact.Landed) })
	return all
}

// In whatever order calls arrive and answers come, no more calls are said to be granted than a
// window has permits, if nobody else spends; calls that were refused spent none. After all answers
// it is just as many.
func TestCeilingIsNeverAboveAWindow(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		permits := float64(5 + rng.IntN(50))
		s, refused := New(Setting{}), 0.0
		for _, c := range fly(rng, 60, permits, 0) {
			s.Observe(&c.fact, c.fact.Landed)
			if c.fact.Refused {
				refused++
			}
			if got := s.Ceilings[0].C; got > permits+refused {
				t.Fatalf("seed %d: of %.0f permits, with %.0f refused, calls up to %.0f are said to be granted: %+v", seed, permits, refused, got, c)
			}
		}
		if got := s.Ceilings[0].C; got != permits+refused {
			t.Errorf("seed %d: after all answers calls up to %.0f are said to be granted, want %.0f", seed, got, permits+refused)
		}
	}
}

// Answers in any order show what is left once all of them are there, and before as much as is sure.
// What was left long ago then no longer counts, and a call that failed may have been counted.
func TestAllAnswersShowWhatIsLeft(t *testing.T) {
	s := New(Setting{})
	const before = 100 // calls without a reading
	answer := func(ordinal, granted, answered int64, flying int, left, want float64) {
		t.Helper()
		f := Fact{
			Departed: begun.Add(time.Duration(ordinal) * time.Second), Landed: begun.Add(time.Duration(granted)*time.Second + time.Duration(answered)*time.Millisecond),
			Ordinal: before + ordinal, Granted: before + granted, Answered: before + answered, Flying: flying, Waited: true, Quotas: []Quota{minute(20, left)},
		}
		if s.Observe(&f, f.Landed); s.Ceilings[0].C != before+want {
			t.Errorf("call %d reports %.0f left: calls up to %.0f are granted, want %.0f", ordinal, left, s.Ceilings[0].C-before, want)
		}
	}
	answer(3, 4, 1, 3, 18, 19) // they arrive as 1, 3, 4, 2
	answer(4, 4, 2, 4, 17, 19)
	answer(1, 4, 3, 1, 19, 20)
	answer(2, 4, 4, 2, 16, 20)
	answer(7, 7, 5, 3, 17, 22) // four permits later they arrive as 5, 6, 7
	answer(6, 7, 6, 2, 18, 23)
	answer(5, 7, 7, 1, 19, 24)
	s.Unread(before + 8) // it arrives last
	answer(9, 9, 9, 2, 16, 24)
	answer(11, 11, 10, 2, 18, 28) // five permits later
	answer(10, 11, 11, 1, 19, 29)
}

// A newer answer that reports less than all calls in between can have spent says that others
// spend: the ceiling falls at once.
func TestCeilingFallsIfOthersSpend(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	s.answer(false, minute(100, 80))
	before := s.Ceilings[0].C
	s.answer(false, minute(100, 20))
	if c := s.Ceilings[0].C; c != before-59 {
		t.Errorf("80, then 20 were reported to be left of two calls: the ceiling went from %.0f to %.0f, want 59 less", before, c)
	}
}

// One answer that reports a billion permits does not keep a share of them for single calls: the
// lane would crawl for good, though nearly all of its quota is left.
func TestAHugeReadingIsForgotten(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	s.answer(false, minute(100, 90))
	_, want, _ := s.Bound()
	s.answer(false, minute(100, 1e9))
	s.answer(false, minute(100, 88))
	if _, kept, _ := s.Bound(); kept > want {
		t.Errorf("after a billion were reported once, %.0f of 88 permits are kept, want %.0f at most", kept, want)
	}
}

// An answer that reports more than the window that still runs can have left is an old one. It begins
// no window, so the reported reset is still believed. Three in a row are believed.
func TestAnOldReadingBeginsNoWindow(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	s.answer(false, minute(100, 20))
	before := s.Ceilings[0]
	s.answer(false, minute(100, 90))
	if after := s.Ceilings[0]; after.V != before.V || after.Ends != before.Ends {
		t.Errorf("20 were left, then 90 in the same window: the level went from %.0f to %.0f, and %d ends were as reported, want %d", before.V, after.V, after.Ends, before.Ends)
	}
	for range oddly {
		s.answer(false, minute(100, 90))
	}
	if after := s.Ceilings[0]; after.V < before.V+60 {
		t.Errorf("90 were reported to be left again and again: the level went from %.0f to %.0f", before.V, after.V)
	}
}

// A bucket that is known to gain 200/s has not gained 12 permits within 5 ms. An answer that says so is
// an old one, and changes neither the level nor its slope.
func TestAnOldReadingFillsNoBucket(t *testing.T) {
	s := New(Setting{})
	now, left := begun, 20.0
	answer := func(left float64) Ceiling {
		now = now.Add(5 * time.Millisecond)
		at := s.Last.Ordinal + 1
		f := Fact{Departed: now, Landed: now.Add(4 * time.Millisecond), Ordinal: at, Granted: at, Answered: at - 1, Flying: 1, Waited: true}
		f.Quotas = []Quota{{Limit: 20, HasLimit: true, Remaining: left, HasRemaining: true}}
		s.Observe(&f, f.Landed)
		return s.Ceilings[0]
	}
	for range 13 { // at once
		left--
		now = now.Add(-5 * time.Millisecond)
		answer(left)
	}
	before := Ceiling{}
	for range 200 { // as fast as it fills
		before = answer(left)
	}
	if !before.fills() || before.Slope < 190 || before.Slope > 210 {
		t.Fatalf("the slope is %.0f/s give or take %.0f, want 200/s", before.Slope, before.Blur)
	}
	if after := answer(left + 12); after.V > before.V+2 || after.Slope != before.Slope {
		t.Errorf("12 more in 5 ms: the level went from %.0f to %.0f, and the slope to %.0f/s", before.V, after.V, after.Slope)
	}
}

// An older answer that comes late, a stale one among them, does not lower what a newer one
// has said.
func TestOlderAnswersLowerNoCeiling(t *testing.T) {
	s := New(Setting{})
	answer := func(ordinal int64, departed time.Duration, left float64) {
		f := Fact{Departed: begun.Add(departed), Landed: begun.Add(time.Second), Ordinal: ordinal, Granted: 3, Flying: 1, Waited: true}
		f.Quotas = []Quota{minute(100, left)}
		s.Observe(&f, f.Landed)
	}
	answer(3, 30*time.Millisecond, 90)
	before := s.Ceilings[0]
	answer(2, 20*time.Millisecond, 3)
	if c := s.Ceilings[0]; c.C != before.C || c.V != before.V {
		t.Errorf("an older answer moved the ceiling from %.0f to %.0f, and the level from %.0f to %.0f", before.C, c.C, before.V, c.V)
	}
}

// A call that fails spends nothing as far as is known; one that was refused surely not. So the
// level line rises by both, and the ceiling by the second alone.
func TestCallsThatSpendNothing(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	s.answer(false, minute(100, 50))
	before := s.Ceilings[0]
	s.ordinal++
	s.Unread(s.ordinal)
	if c := s.Ceilings[0]; c.V != before.V+1 || c.C != before.C {
		t.Errorf("after a call that failed the level is %.0f and the ceiling %.0f, want %.0f and %.0f", c.V, c.C, before.V+1, before.C)
	}
	s.answer(true)
	if c := s.Ceilings[0]; c.V != before.V+2 || c.C != before.C+1 {
		t.Errorf("after a refusal the level is %.0f and the ceiling %.0f, want %.0f and %.0f", c.V, c.C, before.V+2, before.C+1)
	}
}

// While nobody knows how a level rises, the last permits are spent by single calls, each of
// which waits for the answer to the one before, but not without end.
func TestSingleCallsReadTheLevel(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	s.answer(false, minute(20, 2))
	p := s.Plan(s.now, s.ordinal+1)
	if !p.Asks || p.Hold <= s.now || p.Hold > s.now.Add(answers*time.Second) {
		t.Errorf("beside a call without an answer: %+v", p)
	}
	if p := s.Plan(s.now.Add(time.Hour), s.ordinal); p.Hold > s.now.Add(time.Hour) {
		t.Errorf("an hour later, with 2 left and nothing in flight: held for %v", p.Hold.Sub(s.now.Add(time.Hour)))
	}
}

// A window that is reported to end in days is asked about once an hour: what is spent may be
// back, and the reset may be wrong.
func TestDistantResetIsAskedAbout(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	for left := 99.0; left >= 0; left-- {
		q := minute(100, left)
		q.Reset, q.HasReset, q.Held = 72*time.Hour, true, true
		s.answer(left < 0, q)
	}
	q := minute(100, 0)
	q.Reset, q.HasReset = 72*time.Hour, true
	s.answer(true, q)
	if p := s.Plan(s.now.Add(time.Minute), s.ordinal); p.Hold <= s.now.Add(time.Minute) {
		t.Errorf("nothing is left for three days: a minute later %+v", p)
	}
	if now := s.now.Add(61 * time.Minute); s.Plan(now, s.ordinal).Hold > now {
		t.Errorf("nothing is left for three days: an hour later held for %v more", s.Plan(now, s.ordinal).Hold.Sub(now))
	}
}

// So is one whose spent quota bounds nothing, such as a plan that charges for what is beyond it.
func TestDistantResetIsAskedAboutByServedCalls(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	for i := range 120 {
		q := minute(100, float64(max(99-i, 0)))
		q.Reset, q.HasReset = 12*24*time.Hour, true
		s.answer(false, q)
		if now := s.now.Add(time.Hour + time.Second); s.Plan(now, s.ordinal).Hold > now {
			t.Fatalf("call %d was served: an hour later held for %v more", i+1, s.Plan(now, s.ordinal).Hold.Sub(now))
		}
		if i > 99 {
			s.now = s.now.Add(time.Hour)
		}
	}
}

// A vendor that reports zero on every answer, and serves, says nothing.
func TestZeroAlwaysHoldsNobody(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	for range 10 {
		q := minute(100, 0)
		q.Reset, q.HasReset = time.Minute, true
		s.answer(false, q)
		if p := s.Plan(s.now, s.ordinal); p.Hold > s.now || p.Reported {
			t.Fatalf("zero left of 100 on every answer that is served: %+v", p)
		}
	}
}

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

// reports returns the fact of a call that is alone in flight and reports so many left.
func reports(ordinal int64, at time.Duration, limit, left float64) *Fact {
	return &Fact{
		Departed: begun.Add(at), Landed: begun.Add(at + time.Millisecond), Ordinal: ordinal, Granted: ordinal, Flying: 1, Waited: true,
		Quotas: []Quota{{Limit: limit, HasLimit: true, Remaining: left, HasRemaining: true}},
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
