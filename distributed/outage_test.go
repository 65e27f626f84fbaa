package distributed_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Replicas cut off from a day's quota share half of what is left of it, and need not wait minutes
// for each permit. A second outage adds no permits, and Redis does not grant them again afterwards.
func TestOutageSharesWhatIsLeftOfALongQuota(t *testing.T) {
	for _, limit := range []throttle.Limit{
		throttle.FixedWindow(quota, 24*time.Hour), throttle.SlidingLog(quota, 24*time.Hour), throttle.TokenBucket(quota, 24*time.Hour, quota),
	} {
		if testing.Short() && limit.Algorithm != throttle.AlgorithmTokenBucket {
			continue // the next test has the others
		}
		t.Run(limit.Algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const replicas, minute = 2, time.Minute
				f := newBubbleFleet(t, replicas, time.Millisecond, limit)
				f.meet()
				if n := take(f.queues[0], 2*quota/10); n != 2*quota/10 {
					t.Fatalf("%d departed, want a fifth of the quota", n)
				}
				for i := range f.queues {
					take(f.queues[i], 1) // so that each knows what is left
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

// An outage keeps a day's reserve for urgent calls: each replica has its part, and spends it on
// urgent calls at once.
func TestOutageKeepsTheReserveOfALongQuota(t *testing.T) {
	for _, limit := range []throttle.Limit{
		throttle.FixedWindow(quota, 24*time.Hour), throttle.SlidingLog(quota, 24*time.Hour), throttle.TokenBucket(quota, 24*time.Hour, quota),
	} {
		t.Run(limit.Algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const replicas, reserved = 2, quota / 5
				f := newBubbleFleet(t, replicas, time.Millisecond, limit.Reserving("20%"))
				f.meet()
				for range 2 { // so that each knows of the other, and what is left
					take(f.queues[0], 1)
					take(f.queues[1], 1)
					time.Sleep(2 * time.Second)
				}
				f.server.Break(redispipe.Silent)
				for i, q := range f.queues {
					bulk := take(q, quota)
					urgent := 0
					for q.WaitTurn(t.Context(), &shaping.Turn{N: 1, Priority: shaping.PriorityHigh, MaxWait: time.Second}) == nil {
						urgent++
					}
					t.Logf("replica %d: %d of bulk, and %d urgent ones", i, bulk, urgent)
					if part := reserved / 2 / replicas; urgent < part || bulk+urgent > quota/2/replicas+2 {
						t.Errorf("replica %d: %d urgent calls departed after %d others, want the %d that are reserved, and %d in all", i, urgent, bulk, part, quota/2/replicas)
					}
				}
			})
		})
	}
}

// A cost above what a replica has left is granted all the same, and the calls after it wait longer.
func TestOutageRefusesNoCostThatTheLimitAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const per = 2 * time.Minute
		f := newBubbleFleet(t, 1, time.Millisecond, throttle.FixedWindow(quota, per))
		f.meet()
		f.server.Break(redispipe.Silent)
		take(f.queues[0], 1) // detects the outage
		for i, want := range []time.Duration{0, per * 600 / quota * 2} {
			from := time.Now()
			if err := f.queues[0].WaitN(t.Context(), 600); err != nil {
				t.Fatalf("WaitN(600) = %v", err)
			}
			if waited := time.Since(from); waited < want || waited > want+10*time.Second {
				t.Errorf("cost %d departed after %v, want %v", i, waited, want)
			}
		}
	})
}

// A process started while Redis is down counts as one of Replicas, or of DefaultReplicas. After a
// reply it is one of the replicas that Redis counts, or of Replicas if that is more, because others
// may have been quiet.
func TestALaneThatNeverMetItsStoreIsOneOfAHundred(t *testing.T) {
	for _, test := range []struct{ replicas, want, met int }{{0, 3, 300}, {3, 100, 100}} {
		if testing.Short() && test.replicas == 0 {
			continue // a minute at 300/s takes two seconds under the race detector
		}
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
			if n := minute(); n < 60*test.met-300 || n > 60*test.met+110 {
				t.Errorf("Replicas %d: %d departed in a minute without Redis that was met, want %d/s", test.replicas, n, test.met)
			}
		})
	}
}

// If Redis never answered a lane and Replicas is not set, the store logs once at what rate such a
// lane runs.
func TestTheShareOfALaneThatNeverMetItsStoreIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(*distributed.Store)
		limits []throttle.Limit
		met    bool
		want   string
	}{
		"no Replicas":    {limits: []throttle.Limit{throttle.TokenBucket(600, time.Second, 100)}, want: "at 3/s (Replicas not set: 1 of 100)"},
		"two limits":     {limits: []throttle.Limit{throttle.SlidingLog(60, time.Minute), {Permits: 9000, Per: time.Minute, Unit: "tokens"}}, want: "at 0.3/m and 45/m of tokens (Replicas not set: 1 of 100)"},
		"a share":        {set: func(s *distributed.Store) { s.Share = 1 }, limits: []throttle.Limit{throttle.LeakyBucket(600, time.Second)}, want: "at 6/s (Replicas not set: 1 of 100)"},
		"no limit":       {},
		"Replicas":       {set: func(s *distributed.Store) { s.Replicas = 3 }, limits: []throttle.Limit{throttle.LeakyBucket(600, time.Second)}},
		"another policy": {set: func(s *distributed.Store) { s.OnLoss = distributed.FailOpen }, limits: []throttle.Limit{throttle.LeakyBucket(600, time.Second)}},
		"Redis was met":  {met: true, limits: []throttle.Limit{throttle.LeakyBucket(600, time.Second)}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := redispipe.Start(t, time.Millisecond)
				store := distributed.New(server.Client(t), "fleet")
				if c.set != nil {
					c.set(store)
				}
				var journal diary
				store.Logger = journal.logger()
				defer store.Close()
				var queues []*shaping.Queue
				for _, lane := range []string{"one", "another"} {
					l, err := store.Limiter(lane, c.limits...)
					if err != nil {
						t.Fatal(err)
					}
					queues = append(queues, shaping.NewQueue(l))
				}
				for _, broken := range []bool{!c.met, true} {
					if broken {
						server.Break(redispipe.Silent)
					}
					for range 2 {
						for _, q := range queues {
							if err := q.Wait(t.Context()); err != nil {
								t.Fatal(err)
							}
						}
						time.Sleep(2 * time.Second)
					}
				}
				lines := strings.Count(journal.String(), "Replicas not set")
				if want := min(len(c.want), 1); lines != want || !strings.Contains(journal.String(), c.want) {
					t.Errorf("%d lines, want %d with %q:\n%s", lines, want, c.want, journal.String())
				}
			})
		})
	}
}

// Replicas that lose Redis share the rate, 10/s of 20/s together. If Replicas is set, that includes
// replicas that used the lane one after another and do not count each other. It also includes the
// rest of a fleet after a minute of normal work.
func TestOutageSharesByTheSizeOfTheFleet(t *testing.T) {
	const outage = 20 * time.Second
	each := func(f *bubbleFleet, replicas int, work, pause time.Duration) {
		for i := range replicas {
			f.work(i, 2, time.Since(f.start)+work)
			time.Sleep(pause)
		}
	}
	for name, c := range map[string]struct {
		replicas    int // of the settings
		use         func(*bubbleFleet)
		left        int // replicas, in the outage
		least, most float64
	}{
		"one after another":                   {6, func(f *bubbleFleet) { each(f, 6, time.Second, 16*time.Second) }, 6, 9, 10.5},
		"one after another, Replicas not set": {0, func(f *bubbleFleet) { each(f, 6, time.Second, 16*time.Second) }, 6, 9, 61}, // each counts as one, as documented
		"all at once":                         {0, func(f *bubbleFleet) { each(f, 6, 11*time.Second, 0) }, 6, 9, 10.5},
		"a fleet that shrank": {0, func(f *bubbleFleet) {
			each(f, 6, 11*time.Second, 0)
			time.Sleep(11 * time.Second)
			each(f, 2, 75*time.Second, 0)
		}, 2, 9, 10.5},
	} {
		if raced && (c.left < 6 || c.most > 11) {
			continue // the detector makes the script's interpreter ten times slower
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newBubbleFleetOf(t, 6, time.Millisecond, func(s *distributed.Store) { s.Replicas = c.replicas }, throttle.TokenBucket(20, time.Second, 1))
				c.use(f)
				f.wg.Wait()
				f.server.Break(redispipe.Silent)
				from := time.Since(f.start)
				each(f, c.left, outage, 0)
				f.wg.Wait()
				n := 0
				for _, at := range f.all() {
					if at > from {
						n++
					}
				}
				rate := float64(n) / outage.Seconds()
				t.Logf("%.1f/s", rate)
				if rate < c.least || rate > c.most {
					t.Errorf("without Redis %.1f/s departed, want %v/s to %v/s", rate, c.least, c.most)
				}
			})
		})
	}
}

// In a process that runs late every deadline fires late. It still detects that Redis is down, and
// its callers wait no longer than a first call may take.
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
