package throttle

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestLogMemoryIsBoundedByPermits(t *testing.T) {
	g := newLog(SlidingLog(1000, time.Second))
	now := Instant(1)
	for range 200_000 {
		now += Instant(rand.Int64N(int64(2 * time.Millisecond)))
		if a := (asking{now: now, line: now}); g.earliest(a, 1) <= now {
			g.spend(a, now, 1)
		}
	}
	if live, room := len(g.live()), cap(g.runs); live > 1000 || room > 4096 {
		t.Fatalf("%d runs in room for %d, want at most 1000 in 4096", live, room)
	}
}

func TestLogKeepsOneRunOfEqualInstants(t *testing.T) {
	g := newLog(SlidingLog(1_000_000, time.Second))
	for range 1_000_000 {
		g.spend(asking{now: 5, line: 5}, 5, 1)
	}
	if len(g.live()) != 1 {
		t.Fatalf("%d runs, want 1", len(g.live()))
	}
	if at := g.earliest(asking{now: 6, line: 6}, 1_000_000); at != 5+Instant(time.Second) {
		t.Fatalf("earliest = %d, want a second after 5", at)
	}
}

// A walked log remembers each permit separately, and scans all of them.
type walked struct {
	limit Limit
	at    []Instant
	gone  Instant
}

func (w *walked) charge(now Instant, n int64) {
	if last := len(w.at) - 1; last >= 0 {
		now = max(now, w.at[last])
	}
	for range n {
		w.at = append(w.at, now)
	}
	w.trim()
}

func (w *walked) trim() {
	if over := len(w.at) - w.limit.Permits; over > 0 {
		w.gone, w.at = w.at[over-1], w.at[over:]
	}
}

func (w *walked) relieve(at Instant, n int64) {
	if at <= w.gone {
		return
	}
	i, _ := slices.BinarySearch(w.at, at)
	w.at = slices.Delete(w.at, i, min(i+int(n), len(w.at)))
}

func (w *walked) opens(n int64) Instant {
	at := w.gone
	if way := len(w.at) - w.limit.Permits + int(n); way > 0 {
		at = w.at[way-1]
	}
	if at == minInstant {
		return at
	}
	return at.Add(w.limit.Per)
}

func (w *walked) used(now Instant) (used int64) {
	for _, at := range w.at {
		if at.Add(w.limit.Per) > now {
			used++
		}
	}
	return used
}

func (w *walked) tune(now Instant, l Limit) {
	if w.gone.Add(w.limit.Per) <= now {
		w.gone = minInstant
	}
	w.at = slices.DeleteFunc(w.at, func(at Instant) bool { return at.Add(w.limit.Per) <= now })
	w.limit = l
	w.trim()
}

// A log equals one that scans its permits when it is charged, relieved, changed and read, also out
// of order.
func TestLogHoldsWhatOneThatWalksDoes(t *testing.T) {
	histories := uint64(2_000)
	if testing.Short() {
		histories = 200
	}
	for seed := range histories {
		random := rand.New(rand.NewPCG(seed, 3))
		limit := func() Limit {
			return SlidingLog(1+random.IntN(60), time.Duration(1+random.IntN(200)))
		}
		l := limit()
		g, w := newLog(l), &walked{limit: l, gone: minInstant}
		now := Instant(1_000)
		for step := range 200 {
			now += Instant(random.IntN(4))
			read := now - Instant(random.IntN(20)) + Instant(random.IntN(20))
			n := 1 + random.Int64N(4)
			switch random.IntN(6) {
			case 0, 1, 2:
				g.charge(read, n)
				w.charge(read, n)
			case 3, 4:
				at := now - Instant(random.IntN(100))
				g.relieve(now, at, n)
				w.relieve(at, n)
			case 5:
				if l := limit(); random.IntN(4) == 0 {
					was := g
					g = newLog(l)
					g.adopt(now, now, was)
					w.tune(now, l)
				}
			}
			if runs := len(g.live()); runs > 2*int(g.kept) {
				t.Fatalf("history %d, step %d: %d runs for %d permits, want at most twice as many", seed, step, runs, g.kept)
			}
			most := 1 + random.Int64N(g.permits)
			if got, want := [...]int64{g.kept, g.used(read), int64(g.opens(most))}, [...]int64{int64(len(w.at)), w.used(read), int64(w.opens(most))}; got != want {
				t.Fatalf("history %d, step %d: %v permits kept, used and opening for %d, want %v", seed, step, got, most, want)
			}
		}
	}
}

func TestLogOfFewerPermitsFreesTheRoomOfMany(t *testing.T) {
	many, few := newLog(SlidingLog(100_000, time.Second)), newLog(SlidingLog(10, time.Second))
	for now := range Instant(100_000) {
		many.charge(now, 1)
	}
	few.adopt(100_000, 100_000, many)
	if live, room := len(few.live()), cap(few.runs); live != 10 || room > 100 {
		t.Errorf("%d runs in room for %d, want 10 in at most 100", live, room)
	}
}

// Two new limits that take over one log have separate copies.
func TestLogsFromOneLogAreApart(t *testing.T) {
	s := NewAt(SlidingLog(100, time.Second)).(*set)
	for now := range Instant(50) {
		_, _ = s.Take(now+1, Request{N: 1})
	}
	if err := s.Tune(60, SlidingLog(80, time.Second), SlidingLog(200, time.Minute)); err != nil {
		t.Fatal(err)
	}
	for now := range Instant(30) {
		_, _ = s.Take(now+70, Request{Each: []int{1, 0}})
	}
	for i, want := range []int64{80, 50} {
		if used := s.rules[i].used(100); used != want {
			t.Errorf("limit %d: %d used, want %d", i, used, want)
		}
	}
	s.rules[1].relieve(100, 1, 10)
	for i, want := range []int64{80, 40} {
		if used := s.rules[i].used(100); used != want {
			t.Errorf("limit %d, ten given back to the other: %d used, want %d", i, used, want)
		}
	}
}
