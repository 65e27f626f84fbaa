package gate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// Calls overtake each other, and answers of a window that has ended come late: neither
// makes more of a quota than is left.
func TestQuotaIsWhatTheFewestLeftSay(t *testing.T) {
	start := throttle.InstantOf(time.Unix(1_700_000_000, 0))
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
		{"the fewest is left", []reading{{0, time.Minute, 7}, {0, time.Minute, 9}}, 2, time.Second, 5},
		{"a new window is whole", []reading{{0, time.Minute, 0}}, 2, 61 * time.Second, 8},
		{"of which its answers tell", []reading{{0, time.Minute, 0}, {61 * time.Second, 59 * time.Second, 6}}, 2, 62 * time.Second, 4},
		{"and late answers do not", []reading{{0, time.Minute, 0}, {59 * time.Second, time.Second, 0}, {61 * time.Second, time.Second, 0}}, 0, 62 * time.Second, 10},
		{"a window that began a second early", []reading{{0, time.Minute, 0}, {59 * time.Second, time.Minute, 6}}, 0, 59 * time.Second, 6},
	}
	for _, test := range tests {
		q := &quotas{flights: new(flight.Table)}
		for id := range test.flying {
			q.flights.Board(start.Add(test.at), uint64(id+1))
		}
		for _, r := range test.readings {
			now := start.Add(r.at)
			q.room(now)
			q.read(now, []learn.Quota{{Limit: 10, Remaining: r.left, Reset: r.reset, HasLimit: true, HasRemaining: true, HasReset: true}})
		}
		if got, _ := q.room(start.Add(test.at)); got != test.want {
			t.Errorf("%s: %d may depart, want %d", test.name, got, test.want)
		}
	}
}

// With two left, and two in flight, the next call waits for an answer, but for no longer
// than a call that hangs is counted.
func TestQuotaHoldsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lineOf(t, (*Gate).WaitForResets)
		report := func(left float64) {
			l.Spent(l.Now(), []learn.Quota{{Limit: 10, Remaining: left, Reset: time.Minute, HasLimit: true, HasRemaining: true, HasReset: true}})
		}
		id := l.want(0)
		report(2)
		l.land(id, true)
		id = l.want(0)
		l.want(0)
		if f := l.Forecast(l.Now(), l.request(9)); f.Reason != throttle.ReasonConcurrency || f.At > l.Now() {
			t.Errorf("Forecast = %+v, want the reason and no instant", f)
		}
		time.AfterFunc(40*time.Millisecond, func() { l.land(id, true) }) // it reports nothing
		l.want(40 * time.Millisecond)
		l.want(time.Second) // one of the two hangs
		if n := l.room(l.Now(), 5); n != 0 {
			t.Errorf("permits are fetched for %d, want none", n)
		}
	})
}
