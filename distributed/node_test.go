package distributed_test

import (
	"log/slog"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// goroutinesCreated returns how many goroutines this process has started.
func goroutinesCreated() uint64 {
	sample := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// While Redis is silent, one lane probes it for all, and no lane runs a timer. Once it is back,
// lanes with waiting callers call it as fast as connections allow, and no call fails because others
// precede it.
func TestNodeIsLostAndBackForAllLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pool, trip, outage = 2, 10 * time.Millisecond, time.Minute
		lanes := orShort(400, 100)
		server := redispipe.Start(t, trip)
		opt := *server.Client(t).Options()
		opt.PoolSize = pool
		client := redis.NewClient(&opt)
		defer client.Close()
		store := distributed.New(client, "crowd")
		store.Logger = slog.New(slog.DiscardHandler)
		store.Replicas = 1
		defer store.Close()
		var limiters []throttle.Limiter
		var queues []*shaping.Queue
		for i := range lanes {
			l, err := store.Limiter("lane"+strconv.Itoa(i), throttle.LeakyBucket(1, time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			limiters, queues = append(limiters, l), append(queues, shaping.NewQueue(l))
		}
		states := func() (lost int, failures uint64) {
			for i, l := range limiters {
				s := l.State(queues[i].Now()).Store
				failures += s.Failures
				if s.Lost {
					lost++
				}
			}
			return lost, failures
		}
		var calling sync.WaitGroup
		call := func(q *shaping.Queue) {
			calling.Go(func() {
				if err := q.Wait(t.Context()); err != nil {
					t.Errorf("Wait() = %v", err)
				}
			})
		}
		call(queues[0])
		calling.Wait()

		server.Break(redispipe.Silent)
		for _, q := range queues[1:] {
			call(q) // departs by its share
		}
		calling.Wait()
		time.Sleep(5 * time.Second)
		if lost, _ := states(); lost != lanes-1 {
			t.Errorf("%d lanes of %d have lost the store, want all that were called", lost, lanes)
		}
		before := goroutinesCreated()
		time.Sleep(outage)
		if n := goroutinesCreated() - before; n > 20*uint64(outage/time.Second) {
			t.Errorf("%d goroutines in %v of an outage without callers, want those of two probes a second", n, outage)
		}

		for _, q := range queues {
			call(q) // waits for more than an hour
		}
		time.Sleep(time.Second)
		_, failed := states()
		server.Break(redispipe.Healthy)
		time.Sleep(2*time.Second + time.Duration(lanes/pool)*2*trip)
		lost, failures := states()
		if lost > 0 || failures > failed+2 { // the probe lost before
			t.Errorf("%d lanes are lost still, and %d calls failed since Redis is back", lost, failures-failed)
		}
		server.Forget()
		calling.Wait()
	})
}

// A step of Redis's clock, or of this process's, is reported once, by whichever lane detects it
// first, at once or an hour later.
func TestAClockThatSteppedIsReportedOnceForAllLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lanes := orShort(200, 40)
		server := redispipe.Start(t, time.Millisecond)
		ours := distributed.New(server.Client(t), "crowd")
		ours.Logger = slog.New(slog.DiscardHandler)
		defer ours.Close()
		var ahead atomic.Int64
		var log watchLog
		var queues []*shaping.Queue
		for i := range lanes {
			l, err := ours.Limiter("lane"+strconv.Itoa(i), throttle.TokenBucket(1, time.Second, 10))
			if err != nil {
				t.Fatal(err)
			}
			log.watch(l.(store.Limiter))
			queues = append(queues, shaping.NewQueue(l))
		}
		distributed.Skew(ours, &ahead)
		call := func(queues []*shaping.Queue) {
			var calling sync.WaitGroup
			for _, q := range queues {
				calling.Go(func() {
					if err := q.Wait(t.Context()); err != nil {
						t.Errorf("Wait() = %v", err)
					}
				})
			}
			calling.Wait()
		}
		call(queues)
		for _, step := range []time.Duration{time.Hour, 0, -10 * time.Second, 0} {
			calling := make(chan struct{})
			go func() { // some calls are under way when the clock is set
				defer close(calling)
				call(queues[lanes/2:])
			}()
			time.Sleep(500 * time.Microsecond)
			ahead.Store(step.Microseconds())
			call(queues[:lanes/4])
			<-calling
			time.Sleep(time.Hour)
			call(queues)
			n := 0
			for _, event := range log.taken() {
				if event == store.EventClockStepped {
					n++
				}
			}
			if n != 1 {
				t.Errorf("a step to %v was reported %d times, want once", step, n)
			}
		}
	})
}

// Permits that lanes spent in an outage count once Redis is back, even without further calls there:
// other lanes have only the rest of the quota.
func TestNodeReceivesWhatIdleLanesSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes, quota = 8, 10
		server := redispipe.Start(t, time.Millisecond)
		open := func() (queues []*shaping.Queue) {
			store := distributed.New(server.Client(t), "spent")
			store.Logger = slog.New(slog.DiscardHandler)
			t.Cleanup(func() { store.Close() })
			for i := range lanes {
				l, err := store.Limiter("lane"+strconv.Itoa(i), throttle.SlidingLog(quota, time.Hour))
				if err != nil {
					t.Fatal(err)
				}
				queues = append(queues, shaping.NewQueue(l))
			}
			return queues
		}
		a, b := open(), open()
		server.Break(redispipe.Silent)
		for _, q := range a {
			if err := q.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		server.Break(redispipe.Healthy)
		time.Sleep(5 * time.Second)
		for i, q := range b {
			if n := take(q, quota); n != quota-1 {
				t.Errorf("lane %d: %d departed after the outage, want %d, for one of %d was spent in it", i, n, quota-1, quota)
			}
		}
	})
}
