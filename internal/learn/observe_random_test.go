package learn_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

const start = throttle.Instant(1_700_000_000_000_000_000)

func at(seconds float64) throttle.Instant {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// fact is the n-th departure, every 10 ms, which took 5 ms.
func fact(n int64) learn.Fact {
	left := at(float64(n) / 100)
	return learn.Fact{Departed: left, Landed: left.Add(5 * time.Millisecond), Ordinal: n, Granted: n, Flying: 1, Waited: true}
}

// feed observes facts as they land.
func feed(s learn.State, facts ...learn.Fact) learn.State {
	for i := range facts {
		s.Observe(&facts[i], facts[i].Landed)
	}
	return s
}

// A copy of a state does not change with it.
func TestStateIsAValue(t *testing.T) {
	before := feed(learn.New(learn.Setting{}), fact(1), fact(2))
	kept := before
	f := fact(3)
	f.Refused = true
	after := before
	if after.Observe(&f, f.Landed); after == before {
		t.Error("a refusal changed nothing")
	}
	if before != kept {
		t.Error("the copy has changed")
	}
}

func TestStateSurvivesJSON(t *testing.T) {
	s := learn.New(learn.Setting{})
	for n := range int64(300) {
		f := fact(n + 1)
		f.Refused = n%17 == 16
		f.Quotas = []learn.Quota{{Limit: 20, HasLimit: true, Remaining: float64(20 - n%17), HasRemaining: true, Reset: time.Second, HasReset: true}}
		s = feed(s, f)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 8<<10 {
		t.Errorf("the state takes %d bytes", len(text))
	}
	var back learn.State
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back != s {
		t.Errorf("state after JSON = %+v, want %+v", back, s)
	}
}

func TestNothingLeavesBeforeRetryTime(t *testing.T) {
	f := fact(1)
	f.Refused, f.Until = true, at(30)
	s := feed(learn.New(learn.Setting{}), f)
	late := fact(2) // left before the refusal came
	s = feed(s, late)
	if p := s.Plan(at(1), 2); p.Hold < at(30) {
		t.Errorf("Plan.Hold = %v, want at least %v", p.Hold, at(30))
	}
}

// Refusals of calls that left before the first one came change nothing.
func TestBurstOfRefusalsCountsOnce(t *testing.T) {
	s := learn.New(learn.Setting{})
	for n := range int64(200) {
		s = feed(s, fact(n+1))
	}
	refused := func(n int64) learn.Fact {
		f := fact(n)
		f.Refused, f.Granted, f.Until = true, 220, at(4)
		return f
	}
	one := feed(s, refused(201))
	many := one
	for n := int64(202); n <= 220; n++ {
		many = feed(many, refused(n))
	}
	next := fact(500)
	one, many = feed(one, next), feed(many, next)
	a, b := one.Plan(at(6), 500), many.Plan(at(6), 500)
	if a.Rate <= 0 || b.Rate < a.Rate/2 {
		t.Errorf("rate after twenty refusals of one burst = %v, after one = %v", b.Rate, a.Rate)
	}
}

// The bracket: 100 calls a second are refused now and then, and the estimate is the served rate.
func TestRateIsWhatWasServed(t *testing.T) {
	s := learn.New(learn.Setting{})
	left, granted, tokens := at(0), int64(0), 1.0
	served, last := 0, left
	for left < at(120) {
		granted++
		f := learn.Fact{Departed: left, Landed: left.Add(5 * time.Millisecond), Ordinal: granted, Granted: granted, Flying: 1, Waited: true}
		tokens = math.Min(1, tokens+100*left.Sub(last).Seconds())
		last = left
		if f.Refused = tokens < 1; !f.Refused {
			tokens--
			if left > at(60) {
				served++
			}
		}
		s = feed(s, f)
		p := s.Plan(f.Landed, granted)
		next := f.Landed
		if p.Rate > 0 {
			next = max(next, left.Add(time.Duration(1e9/p.Rate)))
		}
		left = max(next, p.Hold)
	}
	if got := float64(served) / 60; got < 96 || got > 100.5 {
		t.Errorf("%v served a second of 100", got)
	}
}

func TestQuietFactsChangeNoPlan(t *testing.T) {
	s := feed(learn.New(learn.Setting{}), fact(1))
	f := fact(2)
	f.Waited = false
	if !s.Quiet(&f) {
		t.Fatal("a served call without callers behind it is not quiet")
	}
	after := feed(s, f)
	if got, want := after.Plan(f.Landed, 2), s.Plan(f.Landed, 2); got != want {
		t.Errorf("plan after a quiet fact = %+v, want %+v", got, want)
	}
	f.Refused = true
	if s.Quiet(&f) {
		t.Error("a refusal is quiet")
	}
}

// Garbage in every field: the plan still lets calls depart.
func TestHostileFactsNeverStop(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 0.5, 1, 2, 5, 1e9, 1e300}
	pick := func() float64 { return odd[rng.IntN(len(odd))] }
	for range 200 {
		s := learn.New(learn.Setting{Spread: rng.IntN(2) == 0})
		for n := range int64(300) {
			f := learn.Fact{
				Departed: at(rng.Float64() * 100), Landed: at(rng.Float64() * 100), Ordinal: rng.Int64N(400) - 5, Granted: rng.Int64N(400),
				Flying: rng.IntN(100) - 3, Waited: rng.IntN(2) == 0, Refused: rng.IntN(4) == 0,
			}
			for range rng.IntN(4) {
				f.Quotas = append(f.Quotas, learn.Quota{
					Name: string(rune('a' + rng.IntN(9))), Limit: pick(), HasLimit: true, Remaining: pick(), HasRemaining: true,
					Reset: time.Duration(rng.Uint64()), HasReset: rng.IntN(2) == 0, Window: time.Duration(rng.Uint64()), HasWindow: rng.IntN(2) == 0,
				})
			}
			now := at(float64(n) / 3)
			s.Observe(&f, now)
			p := s.Plan(now, 400)
			if math.IsNaN(p.Rate) || math.IsInf(p.Rate, 0) || p.Rate < 0 || p.Most < 0 || p.Hold > now.Add(2*time.Hour) {
				t.Fatalf("plan after %+v: %+v", f, p)
			}
		}
	}
}

// minute returns the n-th answer of a window of 100 that ends at the 60th second.
func minute(n int64, left float64) learn.Fact {
	f := fact(n)
	f.Quotas = []learn.Quota{{Limit: 100, HasLimit: true, Remaining: left, HasRemaining: true, Reset: at(60).Sub(f.Landed), HasReset: true}}
	return f
}

// A window whose level stayed constant while a bucket's would have risen is held to its end: no
// call is refused in between. Then one call reads the next one's level.
func TestReportedWindowIsHeldToItsEnd(t *testing.T) {
	s := learn.New(learn.Setting{})
	for n := range int64(100) {
		s = feed(s, minute(n+1, float64(99-n)))
	}
	for _, c := range []struct {
		now     throttle.Instant
		granted int64
		held    bool
	}{{at(1.01), 100, true}, {at(30), 100, true}, {at(60.1), 100, false}, {at(60.1), 101, true}} {
		if p := s.Plan(c.now, c.granted); p.Hold > c.now != c.held {
			t.Errorf("Plan(%v, %v) = %+v, want held: %v", c.now, c.granted, p, c.held)
		}
	}
}
