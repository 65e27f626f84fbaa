package shaping_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A rush is a queue of one departure a second, none at hand, and the outcome of its callers, by
// number.
type rush struct {
	t    *testing.T
	q    *shaping.Queue
	n    int
	mu   sync.Mutex
	full []string // callers rejected for lack of room, with the error
	errs []*shaping.Error
	left departed
}

func newRush(t *testing.T, set func(*shaping.Queue)) *rush {
	c := &rush{t: t, q: newQueue(t, throttle.LeakyBucket(1, time.Second))}
	set(c.q)
	if err := c.q.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// come starts a caller, which is in line, or rejected, when come returns.
func (c *rush) come(ctx context.Context, turn shaping.Turn) {
	name := strconv.Itoa(c.n)
	c.n++
	turn.N = 1
	go func() {
		err := c.q.WaitTurn(ctx, &turn)
		var e *shaping.Error
		switch {
		case err == nil:
			c.left.note(name)
		case errors.Is(err, shaping.ErrQueueFull) && errors.As(err, &e):
			c.mu.Lock()
			defer c.mu.Unlock()
			c.full, c.errs = append(c.full, name), append(c.errs, e)
		default:
			c.t.Errorf("caller %s: %v", name, err)
		}
	}()
	synctest.Wait()
}

// end lets all callers depart, and compares rejections and departures, in order.
func (c *rush) end(full, left []string) {
	c.t.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	if !slices.Equal(c.full, full) || !slices.Equal(c.left.list(), left) {
		c.t.Errorf("refused %v and left %v, want %v and %v", c.full, c.left.list(), full, left)
	}
}

func TestFullLineRejectsTheNewcomer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRush(t, func(q *shaping.Queue) { q.MaxWaiting = 2 })
		for range 3 {
			c.come(t.Context(), shaping.Turn{})
		}
		if e := c.errs[0]; e.Waiting != 2 || e.Before != 2 || e.Wait != time.Second || e.Forecast != 3*time.Second || e.Limit == "" {
			t.Errorf("the third is refused with %+v, want 2 before it, a second at least and 3 as it looks", *e)
		}
		c.end([]string{"2"}, []string{"0", "1"})
	})
}

func TestFullLineShedsTheLeastUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRush(t, func(q *shaping.Queue) { q.MaxWaiting, q.Overflow = 4, shaping.OverflowShedLeastUrgent })
		c.come(t.Context(), shaping.Turn{Priority: shaping.PriorityLow, Tenant: "small"})
		c.come(t.Context(), shaping.Turn{Priority: shaping.PriorityLow, Tenant: "flood"})
		c.come(t.Context(), shaping.Turn{Priority: shaping.PriorityLow, Tenant: "flood"})
		c.come(t.Context(), shaping.Turn{})
		// The newest of the flood is rejected, even if it is the newcomer.
		c.come(t.Context(), shaping.Turn{Priority: shaping.PriorityHigh})
		c.come(t.Context(), shaping.Turn{Priority: shaping.PriorityLow, Tenant: "flood"})
		// An urgent line rejects a newcomer that is less urgent than all.
		c.come(t.Context(), shaping.Turn{Priority: shaping.PriorityHigh})
		c.come(t.Context(), shaping.Turn{Priority: shaping.PriorityHigh})
		c.come(t.Context(), shaping.Turn{Priority: shaping.PriorityLow})
		if e := c.errs[0]; e.Waiting != 4 || e.Before != 4 {
			t.Errorf("the first one is sent away with %+v, want 4 of 4 before it", *e)
		}
		c.end([]string{"2", "5", "1", "0", "8"}, []string{"4", "6", "7", "3"})
	})
}

func TestFullLineShedsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRush(t, func(q *shaping.Queue) { q.MaxWaiting, q.Overflow = 2, shaping.OverflowShedOldest })
		for range 4 {
			c.come(t.Context(), shaping.Turn{})
		}
		c.end([]string{"0", "1"}, []string{"2", "3"})
	})
}

// A caller that returned its permits and comes again is not rejected as the oldest.
func TestShedOldestKeepsReturnedTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tenants := range [][2]string{{"", ""}, {"a", "b"}} {
			c := newRush(t, func(q *shaping.Queue) { q.MaxWaiting, q.Overflow = 2, shaping.OverflowShedOldest })
			back := shaping.Turn{N: 1, Tenant: tenants[0]}
			time.Sleep(time.Second)
			if err := c.q.WaitTurn(t.Context(), &back); err != nil {
				t.Fatal(err)
			}
			if err := c.q.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.q.Return(&back)
			went := make(chan error)
			go func() { went <- c.q.WaitTurn(t.Context(), &back) }()
			synctest.Wait()
			for range 4 {
				c.come(t.Context(), shaping.Turn{Tenant: tenants[1]})
			}
			if err := <-went; err != nil {
				t.Errorf("the returned turn: %v, want a departure", err)
			}
			go func() { went <- c.q.WaitTurn(t.Context(), &back) }() // it did depart
			synctest.Wait()
			c.come(t.Context(), shaping.Turn{Tenant: tenants[1]})
			if err := <-went; !errors.Is(err, shaping.ErrQueueFull) {
				t.Errorf("the turn after its departure: %v, want ErrQueueFull", err)
			}
			c.end([]string{"0", "1", "2"}, []string{"3", "4"})
		}
	})
}

// The head is rejected, and the next one asks for less: it departs at once.
func TestShedHeadMakesWayAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(1, time.Second, 10))
		q.MaxWaiting, q.Overflow = 2, shaping.OverflowShedOldest
		if err := q.WaitN(t.Context(), 9); err != nil {
			t.Fatal(err)
		}
		shed := make(chan error, 1)
		go func() { shed <- q.WaitN(t.Context(), 10) }()
		synctest.Wait()
		var d departed
		d.wait(t.Context(), q, "small", 2)
		if err := <-shed; !errors.Is(err, shaping.ErrQueueFull) {
			t.Errorf("the oldest got %v, want ErrQueueFull", err)
		}
		synctest.Wait()
		if n := len(d.list()); n != 1 {
			t.Errorf("%d of two small callers left on the permit at hand, want 1", n)
		}
		time.Sleep(time.Second)
	})
}

func TestLineIsBoundedByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRush(t, func(q *shaping.Queue) { q.MaxWaitingBytes = 100 })
		for _, bytes := range []int64{math.MaxInt64, 1, 60} { // alone it may hold more
			c.come(t.Context(), shaping.Turn{Bytes: bytes})
		}
		time.Sleep(time.Second)
		for _, bytes := range []int64{60, 41, 40, -5} {
			c.come(t.Context(), shaping.Turn{Bytes: bytes})
		}
		c.end([]string{"1", "2", "4"}, []string{"0", "3", "5", "6"})
	})
}

// No caller is shed for a newcomer that does not fit even so.
func TestNoCallerIsShedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRush(t, func(q *shaping.Queue) {
			q.MaxWaitingBytes, q.Overflow = 100, shaping.OverflowShedLeastUrgent
		})
		for range 4 {
			c.come(t.Context(), shaping.Turn{Bytes: 10, Priority: shaping.PriorityLow, Tenant: "a"})
			c.come(t.Context(), shaping.Turn{Bytes: 10, Priority: shaping.PriorityLow, Tenant: "b"})
		}
		c.come(t.Context(), shaping.Turn{Bytes: 10})
		c.come(t.Context(), shaping.Turn{Bytes: 95}) // with all of low gone, it is next
		c.come(t.Context(), shaping.Turn{Bytes: 40}) // three of low make room for it, the newest of the tenant with the most
		slices.Sort(c.full)
		c.end([]string{"5", "6", "7", "9"}, []string{"8", "10", "0", "1", "2", "3", "4"})
	})
}

func TestLineIsBoundedByForecast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRush(t, func(q *shaping.Queue) { q.MaxForecast = 3 * time.Second })
		for range 4 {
			c.come(t.Context(), shaping.Turn{})
		}
		// No caller is before the urgent one.
		c.come(t.Context(), shaping.Turn{Priority: shaping.PriorityHigh})
		c.end([]string{"3"}, []string{"4", "0", "1", "2"})
	})
}

// A permit that has been at hand for long makes no forecast longer: it waits behind a caller of
// two permits for what these take.
func TestMaxForecastBehindACostlierCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.SlidingLog(3, 6*time.Second))
		q.MaxForecast = 4 * time.Second
		for range 2 {
			if err := q.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		both := make(chan error, 2)
		go func() { both <- q.WaitN(t.Context(), 2) }()
		synctest.Wait()
		go func() { both <- q.Wait(t.Context()) }()
		for range 2 {
			if err := <-both; err != nil {
				t.Error(err)
			}
		}
	})
}
