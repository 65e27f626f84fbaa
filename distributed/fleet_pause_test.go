package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// A refusal received by one replica stops all replicas within two round trips, even those with
// permits in hand. Afterwards departures are spaced.
func TestAPauseStopsTheFleetWithinTwoRoundTrips(t *testing.T) {
	t.Parallel()
	const (
		trip  = 50 * time.Millisecond
		pause = time.Second
		slack = 500 * time.Millisecond // a busy machine may run nothing for that long
	)
	limit := throttle.TokenBucket(100, time.Second, burst)
	c := patiently(limit)
	c.Callers = 10
	f := newFleet(t, plan{members: 4, config: c})
	each(f.links, func(p *redistest.Proxy) { p.Delay(trip) })()
	f.steady()
	f.pass(moment)
	paused := now()
	f.members[0].queue.Pause(pause)
	f.pass(pause)
	await(t, "the first departure after the pause", func() bool { return f.journal.count(paused.Add(pause), throttle.Never-1) > 0 })
	f.pass(moment)
	f.stop()
	at := f.journal.instants(everybody)
	within := count(at, paused+1, paused.Add(2*trip))
	after := count(at, paused.Add(2*trip+slack), paused.Add(pause-time.Millisecond))
	own := f.journal.instants(func(d departure) bool { return d.Replica == 0 && d.At > paused.Add(slack) && d.At < paused.Add(pause) })
	t.Logf("%d departures within two round trips of %v, %d between them and %v after, %d later", within, trip,
		count(at, paused.Add(2*trip), paused.Add(2*trip+slack)), slack, after)
	if after > 0 || len(own) > 0 {
		t.Errorf("%d departures during the pause, %d of the one that was refused, want none", after, len(own))
	}
	nothingSaved(t, rateOf(limit), f.x()+trip, paused.Add(pause), at)
	f.judge()
}

// nothingSaved fails the test if more than one permit was saved at an instant. The bucket saves
// permits afterwards, whenever the machine stops.
func nothingSaved(t *testing.T, rate float64, x time.Duration, from throttle.Instant, at []throttle.Instant) {
	t.Helper()
	at = at[len(at)-count(at, from.Add(-time.Millisecond), throttle.Never-1):]
	t.Logf("the first departs after %v", at[0].Sub(from))
	for i, departs := range at {
		if most := 1 + rate*(departs.Sub(from)+x).Seconds(); float64(i+1) > most {
			t.Errorf("%d departures within %v, want %.1f at most", i+1, departs.Sub(from), most)
			return
		}
	}
}

// Permits that fall due during the pause are void, even at replicas with no reason to ask Redis
// before.
func TestAPauseVoidsPermitsInHand(t *testing.T) {
	t.Parallel()
	const (
		trip  = 50 * time.Millisecond
		pause = 2500 * time.Millisecond
		slack = 500 * time.Millisecond
	)
	limit := throttle.TokenBucket(2, time.Second, 1) // four runs of one permit reach two seconds ahead
	c := patiently(limit)
	c.Callers = 1
	f := newFleet(t, plan{members: 4, config: c})
	each(f.links, func(p *redistest.Proxy) { p.Delay(trip) })()
	f.steady()
	f.pass(moment)
	paused := now()
	f.members[0].queue.Pause(pause)
	f.pass(pause + moment)
	f.stop()
	at := f.journal.instants(everybody)
	if n := count(at, paused.Add(2*trip+slack), paused.Add(pause-time.Millisecond)); n > 0 {
		t.Errorf("%d departures during the pause, want none", n)
	}
	f.judge()
}

// An operator ends a pause at one replica. All replicas continue at once, spaced. Replicas that
// miss the message learn of it with their next call.
func TestAnOperatorEndsAPauseOfTheFleet(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("deaf ", deaf), func(t *testing.T) {
			t.Parallel()
			limit := throttle.TokenBucket(50, time.Second, 10)
			c := patiently(limit)
			c.Callers, c.Patience = 10, 2*time.Minute
			f := newFleet(t, plan{members: 3, config: c})
			f.steady()
			f.members[0].queue.Pause(time.Minute)
			time.Sleep(moment)
			within := moment
			if deaf {
				within = 8 * time.Second
				f.do("CLIENT", "KILL", "TYPE", "pubsub")
			}
			from := now()
			f.members[1].queue.Reconcile(throttle.Fact{Resumed: true})
			for i := range f.members {
				await(t, "a departure", func() bool {
					return len(f.journal.instants(func(d departure) bool { return d.Replica == i && d.At > from })) > 0
				})
			}
			if took := now().Sub(from); took > within+standstill {
				t.Errorf("all depart again after %v, want %v at most", took, within)
			}
			f.departs("once resumed", 0.5*rateOf(limit), now(), now().Add(standstill))
			f.stop()
			at := f.journal.instants(func(d departure) bool { return d.At > from })
			if !deaf { // while replicas that missed the message wait, the bucket fills
				nothingSaved(t, rateOf(limit), f.x(), from, at)
			}
			bound{rate: rateOf(limit), burst: float64(burstOf(limit)), x: f.x()}.judge(t, "once resumed", at)
		})
	}
}
