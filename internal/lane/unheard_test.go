package lane

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A call that hangs is counted for four times what answers take, but for a second at
// least and for ten at most. One that is answered in the end is counted no less than
// once.
func TestHungCallsAreCountedForALease(t *testing.T) {
	for took, lease := range map[time.Duration]time.Duration{
		0: time.Second, 10 * time.Millisecond: time.Second, time.Second: 4 * time.Second, time.Minute: 10 * time.Second,
	} {
		var u unheard
		now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
		u.add(now, 1)
		now = now.Add(took)
		u.land(now, 1)
		for id := range uint64(3) {
			u.add(now.Add(time.Duration(id)), 2+id)
		}
		u.remove(3)
		u.land(now.Add(took), 9) // a stranger
		if n, fewer := u.count(now.Add(lease - 1)); n != 2 || fewer != now.Add(lease) {
			t.Errorf("answers of %v: %d are counted, one fewer in %v, want 2, %v", took, n, fewer.Sub(now), lease)
		}
		if n, fewer := u.count(now.Add(lease)); n != 1 || fewer != now.Add(lease+2) {
			t.Errorf("answers of %v: %d are counted after %v, one fewer in %v, want 1, 2 ns more", took, n, lease, fewer.Sub(now))
		}
		u.land(now.Add(lease), 2) // it had hung
		if n, _ := u.count(now.Add(lease)); n != 1 {
			t.Errorf("answers of %v: %d are counted once the first has answered late, want 1", took, n)
		}
		if n, fewer := u.count(now.Add(time.Hour)); n != 0 || fewer != throttle.Never || len(u.line) > 0 {
			t.Errorf("answers of %v: %d are counted an hour later", took, n)
		}
		if u.land(now.Add(time.Hour), 4); len(u.at) > 0 {
			t.Errorf("answers of %v: %d are kept though all are answered", took, len(u.at))
		}
	}
}

// The clocks of calls that depart together may be read in any order.
func TestUnheardCountsWhatDepartsOutOfOrder(t *testing.T) {
	var u unheard
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	u.add(now, 1)
	u.add(now-5, 2)
	u.add(now+5, 3)
	if n, _ := u.count(now.Add(time.Second)); n != 1 {
		t.Errorf("%d are counted, want the last alone", n)
	}
	u.land(now.Add(time.Second), 2)
	u.land(now.Add(time.Second), 3)
	if n, _ := u.count(now.Add(time.Second)); n != 0 {
		t.Errorf("%d are counted, want none", n)
	}
}

// A call that is given back, leaves again at the same instant and hangs is one call.
func TestUnheardCountsOnceWhoLeavesTwiceAtAnInstant(t *testing.T) {
	var u unheard
	now := throttle.Instant(time.Hour)
	u.add(now, 7)
	u.remove(7)
	u.add(now, 7)
	now = now.Add(2 * time.Second) // it hangs
	u.count(now)
	u.land(now, 7)
	u.add(now, 8)
	if n, _ := u.count(now); n != 1 {
		t.Errorf("%d in flight, want 1", n)
	}
}
