package flight

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// dawn is the start of the histories.
const dawn throttle.Instant = 1_767_225_600_000_000_000

// A hanging call is counted for four times the duration of answers, at least a second and at most
// ten. If it is answered in the end it is still counted only once.
func TestHungCallsAreCountedForALease(t *testing.T) {
	for took, lease := range map[time.Duration]time.Duration{
		0: time.Second, 10 * time.Millisecond: time.Second, time.Second: 4 * time.Second, time.Minute: 10 * time.Second,
	} {
		if got := Lease(took); got != lease {
			t.Errorf("Lease(%v) = %v, want %v", took, got, lease)
		}
		var f Table
		f.Board(dawn, 1)
		now := dawn.Add(took)
		f.Land(now, 1)
		for id := range uint64(3) {
			f.Board(now.Add(time.Duration(id)), 2+id)
		}
		f.Leave(3)
		f.Land(now.Add(took), 9) // an unknown call
		counted := 2
		f.Ended = []func(*Call){func(*Call) { counted-- }}
		want := func(at throttle.Instant, n int, fewer throttle.Instant) {
			t.Helper()
			if next := f.Lapse(at); counted != n || next != fewer {
				t.Errorf("answers of %v: Lapse(%v) = %v with %d left, want %v, %d", took, at.Sub(now), next.Sub(now), counted, fewer.Sub(now), n)
			}
		}
		want(now.Add(lease-1), 2, now.Add(lease))
		want(now.Add(lease), 1, now.Add(lease+2))
		f.Land(now.Add(lease), 2) // was hanging
		if counted != 1 {
			t.Errorf("answers of %v: %d are counted once the first has answered late, want 1", took, counted)
		}
		want(now.Add(time.Hour), 0, throttle.Never)
		if f.Kept() != 1 {
			t.Errorf("answers of %v: %d entries are kept, want that of the call that hangs", took, f.Kept())
		}
		if f.Land(now.Add(time.Hour), 4); f.Kept() != 0 {
			t.Errorf("answers of %v: %d entries are kept though all are answered", took, f.Kept())
		}
	}
}

// The clocks of calls that depart together may be read in any order.
func TestEntriesStandInTheOrderOfDepartures(t *testing.T) {
	var f Table
	f.Board(dawn, 1)
	f.Board(dawn-5, 2)
	f.Board(dawn+5, 3)
	counted := 3
	f.Ended = []func(*Call){func(*Call) { counted-- }}
	if next := f.Lapse(dawn.Add(time.Second)); counted != 1 || next != dawn.Add(time.Second)+5 {
		t.Errorf("%d are counted until %v, want the last alone", counted, next.Sub(dawn))
	}
	if f.last.ID != 3 || f.last.At != dawn+5 {
		t.Errorf("the last is call %d at %v, want 3 at 5ns", f.last.ID, f.last.At.Sub(dawn))
	}
	f.Land(dawn.Add(time.Second), 2)
	f.Land(dawn.Add(time.Second), 3)
	if counted != 0 {
		t.Errorf("%d are counted, want none", counted)
	}
	if f.last.ID != 1 {
		t.Errorf("the last is call %d, want 1, which hangs", f.last.ID)
	}
}

// The lease of the next call applies once the first has landed.
func TestNextLeaseIsThatOfTheNextCall(t *testing.T) {
	var f Table
	f.Board(dawn, 1)
	f.Board(dawn+5, 2)
	f.Land(dawn+9, 1)
	if next := f.Lapse(dawn + 9); next != dawn.Add(time.Second)+5 {
		t.Errorf("Lapse = %v, want 1s and 5ns", next.Sub(dawn))
	}
}

// A call that is given back, departs again at the same instant and hangs is one call. So is one
// that boards again although it never landed.
func TestCallThatLeavesTwiceIsCountedOnce(t *testing.T) {
	var f Table
	boarded, ended := 0, 0
	f.Ended = []func(*Call){func(*Call) { ended++ }}
	for range 3 {
		f.Board(dawn, 7)
		if boarded++; boarded == 1 {
			f.Leave(7)
		}
	}
	if ended != 2 || f.Kept() != 1 {
		t.Errorf("of 3 calls %d ended, %d entries, want 2, 1", ended, f.Kept())
	}
	now := dawn.Add(2 * time.Second) // the call hangs
	f.Lapse(now)
	f.Land(now, 7)
	f.Board(now, 8)
	if ended != 3 || f.Kept() != 1 {
		t.Errorf("%d calls ended, %d entries, want 3, and the new one", ended, f.Kept())
	}
}

// Recent counts the selected calls, for the selected time.
func TestRecentCallsAreThoseThatTheCallerMeans(t *testing.T) {
	var f Table
	for id := range uint64(10) {
		f.Board(dawn+throttle.Instant(id), id+1).Given = int64(id)
	}
	late := func(c *Call) bool { return c.Given > 5 }
	for _, test := range []struct {
		now   throttle.Instant
		n     int
		fewer throttle.Instant
	}{
		{dawn + 9, 4, dawn + 106},
		{dawn + 106, 3, dawn + 107},
		{dawn + 109, 0, throttle.Never},
	} {
		if n, fewer := f.Recent(test.now, 100, late); n != test.n || fewer != test.fewer {
			t.Errorf("Recent after %v = %d, %v, want %d, %v", test.now.Sub(dawn), n, fewer.Sub(dawn), test.n, test.fewer.Sub(dawn))
		}
	}
}

func TestSeenCountsDeparturesAndCallsInFlight(t *testing.T) {
	var f Table
	for i := range 3 {
		if v, ok := f.Depart(3); !ok || v.Ordinal() != int64(i+1) || v.Flying() != i+1 {
			t.Errorf("departure %d: %d, %d in flight, %v", i+1, v.Ordinal(), v.Flying(), ok)
		}
	}
	if _, ok := f.Depart(3); ok {
		t.Error("a fourth call departs beside three")
	}
	f.Answered()
	f.Pass()
	if v := f.Look(); v.Ordinal() != 4 || v.Flying() != 2 {
		t.Errorf("%d departures, %d in flight, want 4, 2", v.Ordinal(), v.Flying())
	}
	for range 5 {
		f.Answered()
	}
	if v := f.Look(); v.Ordinal() != 4 || v.Flying() != 0 {
		t.Errorf("%d departures, %d in flight, want 4, 0", v.Ordinal(), v.Flying())
	}
	if f.Start(9); f.Look().Ordinal() != 9 {
		t.Errorf("%d departures, want 9", f.Look().Ordinal())
	}
}

// However many depart at once, the bound is kept and all are counted.
func TestCountsAreExactUnderConcurrency(t *testing.T) {
	const workers, rounds, most = 16, 2000, 5
	var f Table
	var flying, departed atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				if _, ok := f.Depart(most); ok {
					departed.Add(1)
					if n := flying.Add(1); n > most {
						t.Errorf("%d in flight, want %d at most", n, most)
					}
					flying.Add(-1)
					f.Answered()
				}
			}
		})
	}
	wg.Wait()
	if v := f.Look(); v.Ordinal() != departed.Load() || v.Flying() != 0 {
		t.Errorf("%d departures, %d in flight, want %d, 0", v.Ordinal(), v.Flying(), departed.Load())
	}
}

// A landed entry is reused.
func TestEntriesAreUsedAgain(t *testing.T) {
	var f Table
	fill := func() {
		for id := range uint64(64) {
			f.Board(dawn, id+1)
		}
		for id := range uint64(64) {
			f.Land(dawn+1, id+1)
		}
	}
	fill()
	if n := testing.AllocsPerRun(10, fill); n > 0 {
		t.Errorf("%v allocations for 64 calls, want 0", n)
	}
}
