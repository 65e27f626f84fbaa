package reserve

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Two who ask for ten stand behind an urgent caller of one when their permits come. One
// of them has given up, and the other goes. The urgent one is alone then, and goes too.
func TestWhoIsLeftAloneWithPermitsOfOthersGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = time.Millisecond
		l := open(t, newHub(t, redispipe.Start(t, trip).Client(t)), throttle.TokenBucket(5, time.Second, 100))
		q := shaping.NewQueue(l)
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		l.Mu.Lock()
		l.demand.crowded = throttle.Never // no call is put off
		l.Mu.Unlock()
		var callers sync.WaitGroup
		gives, cancel := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{t.Context(), t.Context(), gives} {
			callers.Go(func() { _ = q.WaitN(ctx, 10) })
			synctest.Wait()
		}
		time.Sleep(trip * 3 / 2) // the second call is under way, for two of them
		began := time.Now()
		callers.Go(func() {
			turn := shaping.Turn{N: 1, Priority: shaping.PriorityHigh, MaxWait: time.Minute}
			if err := q.WaitTurn(t.Context(), &turn); err != nil || time.Since(began) > 10*trip {
				t.Errorf("WaitTurn() = %v after %v for the caller that was left alone, want %v at most", err, time.Since(began), 10*trip)
			}
		})
		synctest.Wait()
		cancel()
		callers.Wait()
	})
}
