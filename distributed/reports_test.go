package distributed_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Stricter limits apply at once. Looser ones apply when the stricter have not been claimed for 5.5
// s: here two replicas are paused in turn.
func TestTuneReachesTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 2, 2*time.Millisecond, throttle.LeakyBucket(100, time.Second))
		f.work(0, 4, 20*time.Second)
		f.work(1, 4, 20*time.Second)
		between := func(from, to time.Duration) (n int) {
			for _, at := range f.all() {
				if at >= from && at < to {
					n++
				}
			}
			return n
		}
		tune := func(i int, l throttle.Limit) {
			if err := f.queues[i].Tune(l); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(2 * time.Second)
		tune(0, throttle.LeakyBucket(10, time.Second))
		time.Sleep(2 * time.Second)
		tune(1, throttle.LeakyBucket(10, time.Second))
		time.Sleep(6 * time.Second)
		tune(1, throttle.LeakyBucket(100, time.Second))
		time.Sleep(2 * time.Second)
		tune(0, throttle.LeakyBucket(100, time.Second))
		if err := f.queues[0].Tune(throttle.Limit{}); err == nil {
			t.Error("Tune() of a limit that does not validate = nil")
		}
		f.wg.Wait()
		f.bounded(100, 1+2) // permits granted under the old limits depart among the new ones
		if n := between(0, 2*time.Second); n < 198 {
			t.Errorf("%d departures in 2s at 100/s", n)
		}
		if n := between(2010*time.Millisecond, 17500*time.Millisecond); n > 156 {
			t.Errorf("%d departures in 15.5s in which a replica claims, or has claimed lately, 10/s", n)
		}
		if n := between(18500*time.Millisecond, 20*time.Second); n < 148 {
			t.Errorf("%d departures in 1.5s at 100/s again", n)
		}
	})
}

// A cost above its estimate delays the fleet as soon as it is reported, within 20 ms.
func TestSettleDelaysTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 2, 2*time.Millisecond, throttle.LeakyBucket(10, time.Second))
		f.meet()
		turn := shaping.Turn{N: 1}
		if err := f.queues[0].WaitTurn(t.Context(), &turn); err != nil {
			t.Fatal(err)
		}
		departure := turn.Departure()
		departure.Request.N = 10
		f.queues[0].Charge(departure)
		time.Sleep(25 * time.Millisecond)
		if err := f.queues[1].Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if at := time.Since(f.start); at < 1100*time.Millisecond || at > 1104*time.Millisecond {
			t.Errorf("the next left at %v, want 1.1s and two round trips at most", at)
		}
	})
}

// Every overspend is reported after an outage, however many corrections wait. Only corrections that
// would give permits back are dropped.
func TestReportsKeepEveryOverspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 2, 2*time.Millisecond, throttle.LeakyBucket(10, time.Second))
		f.meet()
		f.server.Break(redispipe.Silent)
		turn := shaping.Turn{N: 1}
		if err := f.queues[0].WaitTurn(t.Context(), &turn); err != nil {
			t.Fatal(err)
		}
		was := turn.Departure()
		const overspends, each = 400, 2
		for range overspends {
			f.queues[0].Settle(was, throttle.Request{N: 1 + each})
			f.queues[0].Settle(was, throttle.Request{N: 0})
		}
		time.Sleep(5 * time.Second)
		f.server.Break(redispipe.Healthy)
		time.Sleep(5 * time.Second)
		from := time.Now()
		turn = shaping.Turn{N: 1, MaxWait: time.Hour}
		if err := f.queues[1].WaitTurn(t.Context(), &turn); err != nil {
			t.Fatal(err)
		}
		if waited, want := time.Since(from), (overspends*each/10-6)*time.Second; waited < want {
			t.Errorf("waited %v for the overspend, want %v", waited, want)
		}
	})
}

// A day's permits that a stopped machine could not use in time are available again at once: the
// store takes them back.
func TestStalePermitsOfALongQuotaAreNotLost(t *testing.T) {
	const quota = 20
	for _, limit := range []throttle.Limit{
		throttle.TokenBucket(quota, 24*time.Hour, quota), throttle.GCRA(quota, 24*time.Hour, quota),
		throttle.FixedWindow(quota, 24*time.Hour), throttle.SlidingLog(quota, 24*time.Hour), throttle.SlidingWindow(quota, 24*time.Hour),
	} {
		t.Run(limit.Algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := redispipe.Start(t, time.Millisecond)
				store := distributed.New(server.Client(t), "fleet")
				store.Logger = slog.New(slog.DiscardHandler)
				store.Deadline, store.MaxDeadline = 2*time.Second, 2*time.Second
				defer store.Close()
				l, err := store.Limiter("vendor", limit)
				if err != nil {
					t.Fatal(err)
				}
				q := shaping.NewQueue(l)
				n := take(q, 1)
				for _, waiting := range []int{1, 3} {
					server.Delay(600 * time.Millisecond)
					done := make(chan int)
					for range waiting {
						go func() { done <- take(q, 1) }()
					}
					time.Sleep(500 * time.Millisecond)
					server.Delay(time.Millisecond)
					for range waiting {
						n += <-done
					}
				}
				void := l.State(q.Now()).Store.Void
				if n += take(q, quota); n != quota || void == 0 {
					t.Errorf("%d of %d departed, and %d permits were void", n, quota, void)
				}
			})
		})
	}
}

// Reports of a long outage stay few and complete: the total overspend and the latest pause.
// Commands of an operator do not pile up, either.
func TestReportsOfALongOutageAreFewAndComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 10
		events := orShort(10_000, 2000)
		f := newBubbleFleet(t, 2, 2*time.Millisecond, throttle.LeakyBucket(rate, time.Second), throttle.FixedWindow(1_000_000, 24*time.Hour))
		f.meet()
		turn := shaping.Turn{N: 1}
		if err := f.queues[0].WaitTurn(t.Context(), &turn); err != nil {
			t.Fatal(err)
		}
		was := turn.Departure()
		time.Sleep(time.Second)
		f.server.Break(redispipe.Silent)
		l, most := f.limiters[0], 0
		var until throttle.Instant
		for range events {
			time.Sleep(time.Millisecond) // calls fail meanwhile, and their reports are sent again
			now := f.queues[0].Now()
			f.queues[0].Settle(was, throttle.Request{N: 2})
			l.Refund(now, was.Grant, throttle.Request{N: 1})
			f.queues[0].Reconcile(throttle.Fact{Resumed: true})
			f.queues[0].Reconcile(throttle.Fact{Resumed: true})
			until = now.Add(30 * time.Second)
			f.queues[0].Reconcile(throttle.Fact{Until: until})
			most = max(most, distributed.Reports(l))
		}
		if most > 2*256 {
			t.Errorf("%d reports waited", most)
		}
		f.server.Break(redispipe.Healthy)
		time.Sleep(5 * time.Second)
		from := time.Now()
		turn = shaping.Turn{N: 1, MaxWait: time.Hour}
		f.wg.Go(func() {
			if err := f.queues[1].WaitTurn(t.Context(), &turn); err != nil {
				t.Errorf("WaitTurn() = %v", err)
			}
		})
		time.Sleep(time.Second)
		now := f.queues[1].Now()
		if paused, want := f.limiters[1].State(now).Paused, until.Sub(now); (paused - want).Abs() > time.Second {
			t.Errorf("the other is paused for %v, want %v", paused, want)
		}
		f.wg.Wait()
		if waited := time.Since(from); waited < time.Duration(events/rate-10)*time.Second || waited > time.Duration(events/rate+35)*time.Second {
			t.Errorf("waited %v for the overspend, want %v", waited, time.Duration(events/rate)*time.Second)
		}
	})
}
