package distributed_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Replicas that are cut off from a day's quota share half of what is left of it, and
// need not wait minutes for each permit. A second outage brings nothing new, and none
// of it is granted once more when Redis is back.
func TestOutageSharesWhatIsLeftOfALongQuota(t *testing.T) {
	for _, limit := range []throttle.Limit{
		throttle.FixedWindow(quota, 24*time.Hour), throttle.SlidingLog(quota, 24*time.Hour), throttle.TokenBucket(quota, 24*time.Hour, quota),
	} {
		t.Run(limit.Algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const replicas, minute = 2, time.Minute
				f := newBubbleFleet(t, replicas, time.Millisecond, limit)
				f.meet()
				if n := take(f.queues[0], 2*quota/10); n != 2*quota/10 {
					t.Fatalf("%d departed, want a fifth of the quota", n)
				}
				for i := range f.queues {
					take(f.queues[i], 1) // so that each is told what is left
				}
				time.Sleep(2 * time.Second)
				take(f.queues[0], 1)
				take(f.queues[1], 1)
				left := 0.8*quota - 2*replicas - replicas
				for outage := range 2 {
					f.server.Break(redispipe.Silent)
					n := 0
					for i := range f.queues {
						n += take(f.queues[i], quota)
					}
					earned := 0.5 * quota * (2 * minute).Hours() / 24
					most := replicas + earned
					if outage == 0 {
						most += left / 2
						if float64(n) < 0.9*left/2 {
							t.Errorf("%d departed in the outage, want half of the %.0f that are left", n, left)
						}
						left -= float64(n)
					}
					if float64(n) > most+3 {
						t.Errorf("%d departed in outage %d, want %.0f at most", n, outage, most)
					}
					f.server.Break(redispipe.Healthy)
					time.Sleep(5 * time.Second)
				}
				if n := take(f.queues[1], quota); float64(n) > left {
					t.Errorf("%d departed after the outage, want the %.0f that were left at most", n, left)
				}
			})
		})
	}
}

// A cost that is more than what is left for a replica goes all the same, and those that
// follow wait for it.
func TestOutageRefusesNoCostThatTheLimitAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const per = 2 * time.Minute
		f := newBubbleFleet(t, 1, time.Millisecond, throttle.FixedWindow(quota, per))
		f.meet()
		f.server.Break(redispipe.Silent)
		take(f.queues[0], 1) // which finds out
		for i, want := range []time.Duration{0, per * 600 / quota * 2} {
			from := time.Now()
			if err := f.queues[0].WaitN(t.Context(), 600); err != nil {
				t.Fatalf("WaitN(600) = %v", err)
			}
			if waited := time.Since(from); waited < want || waited > want+10*time.Second {
				t.Errorf("cost %d went after %v, want %v", i, waited, want)
			}
		}
	})
}

// A process that begins while Redis is away is one of as many as Replicas says, or of
// DefaultReplicas. Once Redis has answered it is one of those that there are.
func TestALaneThatNeverMetItsStoreIsOneOfAHundred(t *testing.T) {
	for _, test := range []struct{ replicas, want int }{{0, 3}, {3, 100}} {
		synctest.Test(t, func(t *testing.T) {
			server := redispipe.Start(t, time.Millisecond)
			server.Break(redispipe.Silent)
			store := distributed.New(server.Client(t), "fleet")
			store.Logger, store.Replicas = slog.New(slog.DiscardHandler), test.replicas
			defer store.Close()
			l, err := store.Limiter("vendor", throttle.TokenBucket(600, time.Second, 100))
			if err != nil {
				t.Fatal(err)
			}
			q := shaping.NewQueue(l)
			minute := func() (n int) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for q.Wait(ctx) == nil {
					n++
				}
				return n
			}
			if n := minute(); n < 60*test.want-10 || n > 60*test.want+1 {
				t.Errorf("Replicas %d: %d departed in a minute without Redis, want %d/s", test.replicas, n, test.want)
			}
			server.Break(redispipe.Healthy)
			time.Sleep(5 * time.Second)
			if err := q.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			server.Break(redispipe.Silent)
			if n := minute(); n < 60*295 || n > 60*300+110 {
				t.Errorf("Replicas %d: %d departed in a minute without Redis, want 300/s of one that is alone", test.replicas, n)
			}
		})
	}
}

// A process that runs late, so that each deadline fires late, learns all the same that
// Redis is gone: callers wait as long as a first call may take, and not for good.
func TestOutageOfALateProcessBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 30 * time.Millisecond
		server := redispipe.Start(t, time.Millisecond)
		store := distributed.New(server.Client(t), "fleet")
		store.Logger = slog.New(slog.DiscardHandler)
		defer store.Close()
		l, err := store.Limiter("vendor", throttle.TokenBucket(600, time.Second, 100))
		if err != nil {
			t.Fatal(err)
		}
		f, err := store.Flights("vendor", 1)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		q := shaping.NewQueue(l)
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Await(1)
		time.Sleep(time.Second)
		distributed.Dawdle(store, late)
		server.Break(redispipe.Silent)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := q.Wait(ctx); err != nil {
			t.Error(err)
		}
		const call = distributed.DefaultDeadline + late
		if took, want := time.Since(began), (distributed.DefaultFirstDeadline/call+2)*call; took != want {
			t.Errorf("the first caller without Redis waited %v, want %v", took, want)
		}
		time.Sleep(2 * distributed.DefaultLease)
		if !f.State().Lost {
			t.Errorf("a lease has ended, and the store is not lost")
		}
		f.Await(0)
	})
}
