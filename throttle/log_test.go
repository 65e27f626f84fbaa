package throttle

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestLogMemoryIsBoundedByPermits(t *testing.T) {
	g := newLog(SlidingLog(1000, time.Second))
	now := Instant(1)
	for range 200_000 {
		now += Instant(rand.Int64N(int64(2 * time.Millisecond)))
		if a := (asking{now, now}); g.earliest(a, 1) <= now {
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
		g.spend(asking{5, 5}, 5, 1)
	}
	if len(g.live()) != 1 {
		t.Fatalf("%d runs, want 1", len(g.live()))
	}
	if at := g.earliest(asking{6, 6}, 1_000_000); at != 5+Instant(time.Second) {
		t.Fatalf("earliest = %d, want a second after 5", at)
	}
}
