package call

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// Readings of the clocks of a process and of Redis, which differ.
const skew = 1234567 * throttle.Instant(time.Millisecond)

// asTolerance is the permit tolerance of the tests.
const asTolerance = 10 * time.Millisecond

// replied makes the clock learn from a reply written at the time t of Redis and read after a trip.
// The call took this long.
func replied(c *Clock, t int64, way, took time.Duration) throttle.Instant {
	read := script.InstantOf(t) + skew + throttle.Instant(way)
	c.Learn(t, read, took, asTolerance)
	return read
}

func TestClockDatesNothingEarlyAndNoLaterThanTheFastestReply(t *testing.T) {
	var c Clock
	replied(&c, 1_000_000, 3*time.Millisecond, 4*time.Millisecond)
	replied(&c, 2_000_000, 40*time.Microsecond, 90*time.Microsecond)
	replied(&c, 3_000_000, 9*time.Millisecond, 10*time.Millisecond)
	due := c.Here(3_500_000)
	if late := due - script.InstantOf(3_500_000) - skew; late < 0 || late > throttle.Instant(50*time.Microsecond) {
		t.Errorf("dated %v late, want between 0 and 50µs", time.Duration(late))
	}
}

func TestClockFollowsOneThatMovedBack(t *testing.T) {
	var c Clock
	replied(&c, 10_000_000, 40*time.Microsecond, 90*time.Microsecond)
	read := replied(&c, 11_000_000, 40*time.Microsecond, 90*time.Microsecond)
	// A failover to a node whose clock is a second behind.
	c.Learn(11_000_000, read.Add(time.Second), 90*time.Microsecond, asTolerance)
	if early := script.InstantOf(11_000_000) + skew + throttle.Instant(time.Second) - c.Here(11_000_000); early > 0 {
		t.Errorf("dated %v early", time.Duration(early))
	}
}

// Replies later than the tolerance contain only void permits. Two in a row are the new round trip;
// a single one is a process that stopped.
func TestClockFollowsALongerWay(t *testing.T) {
	const fast, slow = 40 * time.Microsecond, 100 * time.Millisecond
	var c Clock
	late := func(at int64) time.Duration {
		return (c.Here(at) - script.InstantOf(at) - skew).Sub(0)
	}
	at := int64(1_000_000)
	for _, step := range []struct{ way, want time.Duration }{
		{fast, fast}, {slow, fast}, {fast, fast}, {slow, fast}, {slow + 7*time.Millisecond, slow}, {slow + asTolerance, slow},
		{slow + 2*asTolerance, slow}, {slow + asTolerance, slow}, {3 * slow, slow}, {2 * slow, 2 * slow}, {fast, fast},
	} {
		replied(&c, at, step.way, step.way+time.Microsecond)
		if got := late(at); got < step.want || got > step.want+20*time.Microsecond {
			t.Errorf("after a reply of %v it dates %v late, want %v", step.way, got, step.want)
		}
		at += 100_000
	}
}

func TestClockFollowsADrift(t *testing.T) {
	var c Clock
	at := int64(1_000_000)
	for i := range 600 { // a minute at 100 parts in a million
		read := script.InstantOf(at) + skew + throttle.Instant(i)*10_000 + 40_000
		c.Learn(at, read, 90*time.Microsecond, asTolerance)
		at += 100_000
	}
	if early := skew + 599*10_000 - (c.Here(at) - script.InstantOf(at)); early > throttle.Instant(2*time.Millisecond) {
		t.Errorf("dated %v early after a minute", time.Duration(early))
	}
}

// The queue's reading of its clock is older than the moment at which it is noted.
func TestClockKeepsTheBestAnchor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		base := throttle.InstantOf(time.Now())
		start := time.Now()
		for _, lag := range []time.Duration{5 * time.Millisecond, time.Microsecond, 20 * time.Millisecond} {
			now := base.Add(time.Since(start))
			time.Sleep(lag)
			c.Anchor(now)
		}
		time.Sleep(time.Second)
		if off := base.Add(time.Since(start)).Sub(c.Now()); off != time.Microsecond {
			t.Errorf("the clock is %v behind, want 1µs", off)
		}
	})
}

// A reply under way while another reply showed a step is older than the step, and shows no second
// one.
func TestRepliesOlderThanAStepDoNotShowIt(t *testing.T) {
	n := stepper{longest: time.Second}
	const way, hour = time.Millisecond, int64(time.Hour / time.Microsecond)
	start := time.Now()
	for i, reply := range []struct {
		sent, read time.Duration
		ahead      int64
		want       bool
	}{
		{0, way, 0, false},
		{time.Second, time.Second + way, hour, true},
		{time.Second - way, time.Second + 2*way, 0, false}, // a longer trip
		{time.Second - way, time.Second + 3*way, 0, false},
		{time.Second + 2*way, time.Second + 4*way, hour, false},
		{2 * time.Second, 2*time.Second + way, 0, true}, // back
		{3 * time.Second, 3*time.Second + way, 0, false},
	} {
		there := start.Add(reply.sent+way/2).UnixMicro() + reply.ahead
		if got := n.Steps(there, start.Add(reply.read), reply.read-reply.sent, 5*way); got != reply.want {
			t.Errorf("reply %d: a step %v, want %v", i, got, reply.want)
		}
	}
}
