package distributed_test

import (
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
)

// An apron is the slots of many lanes, over fewer connections.
type apron []store.Flights

func newApron(t *testing.T, server *redispipe.Server, lanes, pool int, set func(*distributed.Store)) (c apron) {
	opt := *server.Client(t).Options()
	opt.PoolSize = pool
	client := redis.NewClient(&opt)
	t.Cleanup(func() { client.Close() })
	store := distributed.New(client, "crowd")
	store.Logger = slog.New(slog.DiscardHandler)
	set(store)
	t.Cleanup(func() { store.Close() })
	for i := range lanes {
		f, err := store.Flights("lane"+strconv.Itoa(i), slots)
		if err != nil {
			t.Fatal(err)
		}
		c = append(c, f)
	}
	return c
}

// line sets the number of waiting callers in each lane.
func (c apron) line(n int) {
	for _, f := range c {
		f.Await(n)
	}
}

// board starts a call in each lane, and counts those that got a slot.
func (c apron) board() (n int) {
	for _, f := range c {
		if f.Board() {
			n++
		}
	}
	return n
}

func (c apron) states() (lost int, calls, failures uint64) {
	for _, f := range c {
		s := f.State()
		calls, failures = calls+s.Calls, failures+s.Failures
		if s.Lost {
			lost++
		}
	}
	return lost, calls, failures
}

// More lanes call for slots than there are connections. Their calls wait in line, their deadlines
// begin when they are sent, and none fails.
func TestSlotsOfManyLanesStandInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes, pool, trip = 240, 2, 20 * time.Millisecond
		c := newApron(t, redispipe.Start(t, trip), lanes, pool, func(*distributed.Store) {})
		c.line(1)
		time.Sleep(lanes / pool * 2 * trip)
		if n := c.board(); n != lanes {
			t.Errorf("a call departed in %d lanes, want in all %d", n, lanes)
		}
		c.line(0)
		time.Sleep(lanes / pool * 2 * trip)
		if lost, calls, failures := c.states(); lost+int(failures) > 0 || calls < lanes {
			t.Errorf("%d lanes are lost, %d of %d calls failed, want no failure of one call for each lane", lost, failures, calls)
		}
	})
}

// While Redis is silent no idle lane runs a timer. Lanes in line set one for the end of their
// lease. Once Redis is back those call it as fast as connections allow, and idle lanes not at all.
func TestSlotsOfManyLanesAreLostAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pool, trip, outage = 2, 10 * time.Millisecond, time.Minute
		lanes := orShort(400, 100)
		server := redispipe.Start(t, trip)
		c := newApron(t, server, lanes, pool, func(s *distributed.Store) { s.OnLoss = distributed.FailOpen })
		busy, idle := c[:lanes/2], c[lanes/2:]
		c.line(1)
		time.Sleep(time.Duration(lanes/pool) * 2 * trip)
		c.board()
		c.line(0)
		server.Break(redispipe.Silent)
		time.Sleep(5 * time.Second)
		for _, f := range idle {
			f.Land()
		}
		if lost, _, _ := c.states(); lost != lanes {
			t.Errorf("%d lanes of %d have lost the store", lost, lanes)
		}
		before := goroutinesCreated()
		time.Sleep(outage)
		if n := goroutinesCreated() - before; n > 20*uint64(outage/time.Second) {
			t.Errorf("%d goroutines in %v of an outage, want those of two probes a second", n, outage)
		}
		_, called, failed := c.states()
		server.Break(redispipe.Healthy)
		time.Sleep(2*time.Second + time.Duration(lanes/2/pool)*trip) // less than a third of a lease
		lost, calls, failures := c.states()
		if lost > 0 || failures > failed+2 { // the probe lost before
			t.Errorf("%d lanes are lost still, and %d calls failed since Redis is back", lost, failures-failed)
		}
		if n := calls - called; n > uint64(len(busy))+10 {
			t.Errorf("%d calls since Redis is back, want one for each of %d busy lanes", n, len(busy))
		}
	})
}

// Waiting callers look again when a lease ends without Redis: the policy for a loss may allow more
// slots than before, or reject.
func TestSlotsWakeTheLineWhenTheirLeaseEnds(t *testing.T) {
	for _, loss := range []distributed.Loss{distributed.FailOpen, distributed.FailClosed} {
		synctest.Test(t, func(t *testing.T) {
			server := redispipe.Start(t, time.Millisecond)
			f := newApron(t, server, 1, 1, func(s *distributed.Store) { s.OnLoss = loss })[0]
			f.Await(1)
			time.Sleep(time.Second)
			f.Board()
			f.Await(0)
			time.Sleep(time.Second)
			server.Break(redispipe.Silent)
			time.Sleep(5 * time.Second) // the next lease was requested
			if s := f.State(); !s.Lost || s.Slots != 1 {
				t.Fatalf("%v: %+v, want one slot of a lease that is not over", loss, s)
			}
			var woken atomic.Int64
			f.Notify(func() { woken.Store(time.Now().UnixNano()) })
			f.Await(1)
			for f.State().Slots == 1 {
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			if ago := time.Now().UnixNano() - woken.Load(); ago > int64(time.Millisecond) {
				t.Errorf("%v: waiting callers were woken %v ago, want at the end of the lease", loss, time.Duration(ago))
			}
			if boards := f.Board(); boards != (loss == distributed.FailOpen) {
				t.Errorf("%v: Board() = %v", loss, boards)
			}
			f.Await(0)
		})
	}
}
