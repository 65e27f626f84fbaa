package course_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A bank is the ledgers of a lane, and the calls that depart from it.
type bank struct {
	*course.Ledgers
	flights *flight.Table
	ids     uint64
}

func bankOf(limits []throttle.Limit, waits, learns bool) *bank {
	s := course.NewLedgers(nil, limits, waits, learns)
	return &bank{Ledgers: s, flights: s.Flights}
}

// turn returns a call of a cost.
func (b *bank) turn(now throttle.Instant, cost int) flight.Turn {
	b.ids++
	return flight.Turn{Request: throttle.Request{N: cost, ID: b.ids, Since: now}, Now: now}
}

// depart lets a call depart, and returns its ID.
func (b *bank) depart(now throttle.Instant, cost int) uint64 {
	t := b.turn(now, cost)
	t.Call = b.flights.Board(now, t.ID)
	b.Board(t)
	return t.ID
}

// land applies the answer to a call, which may report what is left of a quota.
func (b *bank) land(now throttle.Instant, id uint64, quotas ...learn.Quota) time.Duration {
	wait := b.Read(now, &course.Answer{ID: id, Served: true, Quotas: quotas})
	b.flights.Land(now, id)
	return wait
}

// free returns how many calls of a cost may depart in a row at an instant.
func (b *bank) free(now throttle.Instant, cost int) (n int) {
	for ; n < 1000; n++ {
		if f, _ := b.Ask(b.turn(now, cost)); f.At > now {
			break
		}
		b.depart(now, cost)
	}
	return n
}

// ten is a window of ten calls with a number left.
func ten(left float64, reset time.Duration) learn.Quota {
	return learn.Quota{Limit: 10, Remaining: left, Reset: reset, HasLimit: true, HasRemaining: true, HasReset: true}
}

// Calls overtake each other, and answers of an ended window arrive late: neither makes a quota seem
// larger than it is. "7 left", then "9 left" are reported to the first two of four calls: one of
// the others arrived between them.
func TestLedgerHoldsToWhatIsLeft(t *testing.T) {
	type reading struct {
		at, reset time.Duration
		left      float64
	}
	tests := []struct {
		name     string
		readings []reading
		flying   int
		at       time.Duration
		want     int
	}{
		{"calls overtake each other", []reading{{0, time.Minute, 7}, {0, time.Minute, 9}}, 2, time.Second, 6},
		{"in order", []reading{{0, time.Minute, 9}, {0, time.Minute, 8}}, 2, time.Second, 6},
		{"a new window is whole", []reading{{0, time.Minute, 0}}, 2, 61 * time.Second, 8},
		{"of which its answers report", []reading{{0, time.Minute, 0}, {61 * time.Second, 59 * time.Second, 6}}, 2, 62 * time.Second, 4},
		{"and late answers do not", []reading{{0, time.Minute, 0}, {59 * time.Second, time.Second, 0}, {61 * time.Second, time.Second, 0}}, 0, 62 * time.Second, 10},
		{"a window that began a second early", []reading{{0, time.Minute, 0}, {59 * time.Second, time.Minute, 6}}, 0, 59 * time.Second, 6},
	}
	for _, test := range tests {
		b, departed := bankOf(nil, true, false), []uint64(nil)
		for range test.readings {
			departed = append(departed, b.depart(dawn, 1))
		}
		for range test.flying {
			b.depart(dawn.Add(test.at), 1)
		}
		for i, r := range test.readings {
			b.land(dawn.Add(r.at), departed[i], ten(r.left, r.reset))
		}
		if got := b.free(dawn.Add(test.at), 1); got != test.want {
			t.Errorf("%s: %d may depart, want %d", test.name, got, test.want)
		}
	}
}

// tokens is a lane's limit of tokens, too high to delay calls.
func tokens() []throttle.Limit {
	l := throttle.TokenBucket(1e6, time.Second, 1e6)
	l.Unit = "tokens"
	return []throttle.Limit{throttle.TokenBucket(1e6, time.Second, 1e6), l}
}

// left is a quota of 10,000 tokens with a number left.
func left(n float64) learn.Quota {
	return learn.Quota{Unit: "tokens", Limit: 10_000, Remaining: n, HasLimit: true, HasRemaining: true}
}

// The tokens left bound calls by their cost: 8,000 are left, and half of them are kept for single
// calls until the growth of the quota is known.
func TestLedgerHoldsToCosts(t *testing.T) {
	for cost, want := range map[int]int{100: 40, 500: 8, 1000: 4, 3000: 1} {
		b := bankOf(tokens(), false, true)
		b.land(dawn, b.depart(dawn, 2000), left(8000))
		if got := b.free(dawn.Add(time.Millisecond), cost); got != want {
			t.Errorf("of calls that cost %d, %d may depart, want %d", cost, got, want)
		}
	}
}

// Calls are estimated in the proportion of settled costs to estimates.
func TestSettledCostsCorrectEstimates(t *testing.T) {
	b := bankOf(tokens(), false, true)
	b.land(dawn, b.depart(dawn, 2000), left(8000))
	estimate := throttle.Request{N: 500}
	b.Settle("requests", estimate, throttle.Request{N: 9}) // another unit
	b.Settle("tokens", estimate, throttle.Request{N: 1000})
	if got := b.free(dawn.Add(time.Millisecond), 500); got != 4 {
		t.Errorf("after a call estimated at 500 cost 1000, %d of 500 may depart, want 4, as of 1000", got)
	}
}

// Before any answer departures are bounded by the burst of the configured limit; a call with a
// higher cost departs alone. A call that reports nothing ends that.
func TestBurstBoundsCallsBeforeTheFirstAnswer(t *testing.T) {
	b := bankOf(tokens(), false, true)
	if got := b.free(dawn, 300_000); got != 3 {
		t.Errorf("of calls that cost 300,000, %d may depart before any answer with a burst of a million, want 3", got)
	}
	b.land(dawn, 2) // the first that departed
	if got := b.free(dawn, 300_000); got < 100 {
		t.Errorf("%d may depart after an answer that reports nothing, want any number", got)
	}
	if b := bankOf(tokens(), false, true); b.free(dawn, 2_000_000) != 1 {
		t.Error("a call that costs more than the burst does not depart alone")
	}
	if bankOf(tokens(), false, false).Hold() || bankOf(nil, false, true).Hold() {
		t.Error("a lane without priced calls that waits for no reset has ledgers")
	}
}

// Two routes of a lane report separate quotas in the same unit, distinguished by their keys. Calls
// of one route do not use up the next window of the other, which no answer has reported. That would
// block the lane forever: no call in flight could end it.
func TestLedgerGoesOnWhenAnotherQuotaIsReported(t *testing.T) {
	minute := func(unit string, limit float64) learn.Quota {
		return learn.Quota{Unit: unit, Limit: limit, Remaining: limit / 2, Reset: time.Minute, HasLimit: true, HasRemaining: true, HasReset: true}
	}
	for unit, cost := range map[string]int{"tokens": 1000, "requests": 1} {
		b, n := bankOf(tokens(), true, true), float64(cost)
		b.land(dawn, b.depart(dawn, cost), minute(unit, 10*n))
		for i := range 40 { // its window has ended
			now := dawn.Add(2*time.Minute + time.Duration(i)*time.Second)
			if got := b.free(now, cost); i > 0 && got != 10 {
				t.Fatalf("round %d, %s: %d calls depart with none in flight, want 10", i, unit, got)
			}
			for id := b.ids; id > 0; id-- { // the last one is answered first
				if b.flights.Find(id) != nil {
					b.land(now, id, minute(unit, 1000*n))
				}
			}
		}
	}
}

// A settled cost that no limit allows does not overflow the estimates: that would free calls
// from what is left.
func TestHugeSettledCostFreesNoCall(t *testing.T) {
	b := bankOf(tokens(), false, true)
	b.land(dawn, b.depart(dawn, 2000), left(8000))
	b.Settle("tokens", throttle.Request{N: 500}, throttle.Request{N: math.MaxInt})
	if got := b.free(dawn.Add(time.Millisecond), 500); got > 1 {
		t.Errorf("after a settled cost of %d, %d calls of 500 may depart of 8,000 left, want 1 at most", math.MaxInt, got)
	}
}

// An answer that reports two units pauses for the one that is spent, and each reset is its own.
func TestResetOfTheSpentUnitIsAwaited(t *testing.T) {
	b := bankOf(nil, true, false)
	other := ten(5, time.Hour)
	other.Unit = "tokens"
	quotas := []learn.Quota{other, ten(0, 30*time.Second)}
	if wait := b.land(dawn, b.depart(dawn, 1), quotas...); wait != 30*time.Second || !quotas[1].Held {
		t.Errorf("the lane waits %v, and the quotas are %+v, want 30s for requests", wait, quotas)
	}
}
