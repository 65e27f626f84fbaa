package fleet_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Calls in two lanes of equal limits depart at the rate after a flush, in which one process may get
// the next permits of one lane and another those of the other lane. If neither gave them back in
// time, no call would depart any more, as after 22 of 40 such flushes without it.
func TestFlushesLeaveTheRateOfTwoLanes(t *testing.T) {
	for again := range 6 {
		synctest.Test(t, func(t *testing.T) {
			redis := redispipe.Start(t, time.Millisecond)
			var served atomic.Int64
			var calling sync.WaitGroup
			end := time.Now().Add(25 * time.Second)
			ctx, cancel := context.WithDeadline(t.Context(), end.Add(time.Minute))
			defer cancel()
			for range 2 {
				store := distributed.New(redis.Client(t), "vendor")
				store.Logger = slog.New(slog.DiscardHandler)
				t.Cleanup(func() { _ = store.Close() })
				r := harness.PipeRig(t, &testserver.Vendor{Service: 60 * time.Millisecond}, &weir.Transport{
					Store: store, Limits: []throttle.Limit{throttle.TokenBucket(5, time.Second, 5)},
					Keys: func(*http.Request) []string { return []string{"a", "b"} },
				})
				for range 2 {
					calling.Go(func() {
						for time.Now().Before(end) {
							if r.Get(ctx, "a").Status == http.StatusOK {
								served.Add(1)
							}
						}
					})
				}
			}
			time.Sleep(5*time.Second + time.Duration(again)*7*time.Millisecond)
			redis.Forget()
			time.Sleep(6*time.Second + time.Duration(again)*13*time.Millisecond)
			redis.Forget()
			time.Sleep(5 * time.Second)
			before := served.Load()
			time.Sleep(4 * time.Second)
			if n := served.Load() - before; n < 16 {
				t.Errorf("%d calls were served in 4 s, want 16 of 20 at least", n)
			}
			calling.Wait()
		})
	}
}
