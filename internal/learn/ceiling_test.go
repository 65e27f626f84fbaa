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
func TestRefusedCallsRaiseTheCeiling(t *testing.T) {
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

// reports returns the fact of a call that is alone in flight and reports so many left.
func reports(ordinal int64, at time.Duration, limit, left float64) *Fact {
	return &Fact{
		Departed: begun.Add(at), Landed: begun.Add(at + time.Millisecond), Ordinal: ordinal, Granted: ordinal, Flying: 1, Waited: true,
		Quotas: []Quota{{Limit: limit, HasLimit: true, Remaining: left, HasRemaining: true}},
	}
}
