package distributed_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestPauseReachesTheFleetWithinTwoRoundTrips(t *testing.T) {
	const trip, gap = 4 * time.Millisecond, 5 * time.Millisecond
	for length, latest := range map[time.Duration]time.Duration{
		2 * time.Second: 2 * trip,
		// The runs in hand reach beyond its end. One that the message overtakes begins at its end, and
		// goes back when its first permit is past.
		50 * time.Millisecond: 2*trip + gap,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newBubbleFleet(t, 4, trip, throttle.TokenBucket(200, time.Second, 10))
			for i := range f.queues {
				f.work(i, 16, 4*time.Second)
			}
			time.Sleep(time.Second + 100*time.Microsecond)
			f.queues[2].Pause(length)
			paused := time.Since(f.start)
			f.wg.Wait()
			f.bounded(200, 10)
			var after []time.Duration
			for i, left := range f.left {
				for _, at := range left {
					switch {
					case at > paused && at < paused+length && (i == 2 || at > paused+2*trip):
						t.Errorf("replica %d let one go %v after the pause was announced", i, at-paused)
					case at >= paused+length:
						after = append(after, at-paused-length)
					}
				}
			}
			slices.Sort(after)
			if first := after[0]; first > latest {
				t.Errorf("the first left %v after the pause of %v, want it within %v", first, length, latest)
			}
			for i, at := range after[:20] {
				if at < time.Duration(i)*gap {
					t.Errorf("departure %d left %v after the pause, with a permit that was saved up", i, at)
				}
			}
		})
	}
}

// A run that was under way when a pause was announced is void, even if it arrives after the pause.
func TestPauseVoidsTheRunUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, 40*time.Millisecond, throttle.LeakyBucket(100, time.Second))
		f.meet()
		left := make(chan time.Duration, 1)
		f.wg.Go(func() {
			if err := f.queues[0].Wait(t.Context()); err != nil {
				t.Errorf("Wait() = %v", err)
			}
			left <- time.Since(f.start)
		})
		time.Sleep(25 * time.Millisecond)
		f.queues[0].Pause(10 * time.Millisecond)
		f.wg.Wait()
		if at := <-left; at != 80*time.Millisecond {
			t.Errorf("left at %v, want 80ms, with the next run", at)
		}
	})
}

// A forged message can stop a lane for one second and no longer. The replicas ask the store whether
// the pause is true, and continue if not.
func TestAForgedMessageStopsALaneForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const announced = 2 * time.Second
		f := newBubbleFleet(t, 3, 2*time.Millisecond, throttle.TokenBucket(100, time.Second, 5))
		for i := range f.queues {
			f.work(i, 4, 2*announced)
		}
		time.Sleep(announced)
		if err := f.server.Client(t).Publish(t.Context(), "weir:1:messages:fleet", "vendor 1000000 3600000000").Err(); err != nil {
			t.Fatal(err)
		}
		f.wg.Wait()
		f.bounded(100, 5+2) // callers may spend permits as old as the tolerance
		after := 0
		for _, at := range f.all() {
			if at > announced+1100*time.Millisecond {
				after++
			}
		}
		if after < 60 {
			t.Errorf("%d departures in the second after that of the message, want nearly 90", after)
		}
	})
}

// A true pause that was only announced by message is kept to its end, also while calls to the store
// are slow.
func TestAnAnnouncedPauseIsKeptToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const announced = time.Second
		length := orShort(20*time.Minute, 4*time.Minute)
		f := newBubbleFleet(t, 3, 40*time.Millisecond, throttle.TokenBucket(100, time.Second, 5))
		for i := range f.queues {
			f.work(i, 4, announced+length+time.Second)
		}
		time.Sleep(announced)
		f.queues[0].Pause(length)
		time.Sleep(500 * time.Millisecond)
		for i, q := range f.queues {
			if left := q.State().Paused; left < length-time.Second {
				t.Errorf("replica %d is paused for %v, want the rest of %v", i, left, length)
			}
		}
		f.wg.Wait()
		for _, at := range f.all() {
			if at > announced+80*time.Millisecond && at < announced+length {
				t.Errorf("one left %v after the pause was announced", at-announced)
			}
		}
	})
}
