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

// line has so many stand in line in each lane.
func (c apron) line(n int) {
	for _, f := range c {
		f.Await(n)
	}
}

// board has a call depart in each lane, and counts those that did.
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

// More lanes call for slots than there are connections: their calls stand in line, with
// a deadline that begins when they leave, and none fails.
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
			t.Errorf("%d lanes are lost, %d of %d calls failed, want none of one for each lane", lost, failures, calls)
		}
	})
}

// While Redis is silent no lane with slots has a timer that runs, but those in line for
// more when their lease ends. Once it is back they ask it as fast as there are
// connections, the idle ones not at all.
func TestSlotsOfManyLanesAreLostAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes, pool, trip, outage = 400, 2, 10 * time.Millisecond, time.Minute
		server := redispipe.Start(t, trip)
		c := newApron(t, server, lanes, pool, func(s *distributed.Store) { s.OnLoss = distributed.FailOpen })
		busy, idle := c[:lanes/2], c[lanes/2:]
		c.line(1)
		time.Sleep(lanes / pool * 2 * trip)
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
		time.Sleep(2*time.Second + lanes/2/pool*trip) // less than a third of a lease
		lost, calls, failures := c.states()
		if lost > 0 || failures > failed+2 { // of a probe that was lost before
			t.Errorf("%d lanes are lost still, and %d calls failed since Redis is back", lost, failures-failed)
		}
		if n := calls - called; n > uint64(len(busy))+10 {
			t.Errorf("%d calls since Redis is back, want one for each of %d busy lanes", n, len(busy))
		}
	})
}

// Those in line look again when a lease ends without Redis: the policy for a loss may
// allow more than there was, or refuse.
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
			time.Sleep(5 * time.Second) // it has asked for the next lease
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
				t.Errorf("%v: those in line were told %v ago, want when the lease has ended", loss, time.Duration(ago))
			}
			if boards := f.Board(); boards != (loss == distributed.FailOpen) {
				t.Errorf("%v: Board() = %v", loss, boards)
			}
			f.Await(0)
		})
	}
}
