package reserve

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// pairOf returns two replicas of a lane, from each of which one call has departed, and their server.
func pairOf(t *testing.T, limits ...throttle.Limit) (limiters [2]*Limiter, queues [2]*shaping.Queue, server *redispipe.Server) {
	t.Helper()
	server = redispipe.Start(t, time.Millisecond)
	for i := range queues {
		limiters[i] = open(t, newHub(t, server.Client(t)), limits...)
		queues[i] = shaping.NewQueue(limiters[i])
		if err := queues[i].Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return limiters, queues, server
}

// A replica whose callers have no time for a pause, so that none of them stands in line,
// learns all the same that an operator has ended it, though the news was lost.
func TestWhoRejectsAllAsksWhetherThePauseHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiters, queues, server := pairOf(t, throttle.TokenBucket(100, time.Second, 1))
		queues[0].Pause(10 * time.Minute)
		time.Sleep(2 * time.Second)
		limiters[1].Link.Stop()
		time.Sleep(10 * time.Millisecond)
		queues[0].Reconcile(throttle.Fact{Resumed: true})
		resumed, calls := time.Now(), server.Calls()
		for rejected := 0; ; rejected++ {
			turn := shaping.Turn{N: 1, MaxWait: 50 * time.Millisecond}
			if queues[1].WaitTurn(t.Context(), &turn) == nil {
				break
			}
			if time.Sleep(100 * time.Millisecond); time.Since(resumed) > time.Minute {
				t.Fatalf("%d callers were rejected in the minute after the pause had ended", rejected)
			}
		}
		took, more := time.Since(resumed), server.Calls()-calls
		if t.Logf("the first departed %v after the pause had ended, with %d calls", took, more); took > askOfPauses+time.Second || more > 5 {
			t.Errorf("the first departed %v after the pause had ended, with %d calls, want %v at most", took, more, askOfPauses)
		}
	})
}

// A reply that is older than the message of a pause's end does not bring the pause back.
func TestAnOldReplyBringsNoPauseBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, 10*time.Millisecond)
		l := open(t, newHub(t, server.Client(t)), throttle.TokenBucket(100, time.Second, 1))
		queue := shaping.NewQueue(l)
		if err := queue.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		queue.Pause(10 * time.Minute)
		time.Sleep(2 * askOfPauses)
		if f := l.Forecast(queue.Now(), throttle.Request{N: 1}); f.Reason != throttle.ReasonPause { // and asks whether it holds
			t.Fatalf("forecast in the pause = %+v, want reason pause", f)
		}
		time.Sleep(6 * time.Millisecond) // the call has reached Redis
		l.Deliver(fmt.Sprint(l.known.seen.Epoch+1, " 0"))
		time.Sleep(time.Second)
		if left := l.State(queue.Now()).Paused; left != 0 {
			t.Errorf("paused for %v after a reply that is older than the end, want 0", left)
		}
	})
}

// No replica rejects a caller with little time for a pause that has just ended.
func TestTheEndOfAPauseRejectsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues, _ := pairOf(t, throttle.TokenBucket(100, time.Second, 1))
		queues[0].Pause(10 * time.Minute)
		time.Sleep(100 * time.Millisecond)
		queues[0].Reconcile(throttle.Fact{Resumed: true})
		time.Sleep(10 * time.Millisecond)
		for i, q := range queues {
			if err := q.WaitTurn(t.Context(), &shaping.Turn{N: 1, MaxWait: time.Second}); err != nil {
				t.Errorf("replica %d rejects a caller after the pause: %v", i, err)
			}
		}
	})
}

// A forged message that a pause is over hides no later pause.
func TestAForgedEndHidesNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiters, queues, _ := pairOf(t, throttle.TokenBucket(100, time.Second, 1))
		limiters[1].Deliver("9000000000000000000 0")
		time.Sleep(time.Second)
		queues[0].Pause(10 * time.Minute)
		time.Sleep(2 * time.Second)
		if left := queues[1].State().Paused; left < 9*time.Minute {
			t.Errorf("paused for %v after a forged message, want the rest of ten minutes", left)
		}
	})
}

// A pause reaches a replica whose calls need no permits.
func TestAPauseReachesALaneWithoutLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues, _ := pairOf(t)
		time.Sleep(time.Second)
		queues[0].Pause(10 * time.Minute)
		time.Sleep(2 * time.Second)
		if left := queues[1].State().Paused; left < 9*time.Minute {
			t.Errorf("the other replica is paused for %v, want the rest of ten minutes", left)
		}
	})
}
