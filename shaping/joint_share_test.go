package shaping_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A crossing is a limiter of 100 permits a second, and one of as many or fewer. Those of the
// second one fall due a while after those of the first.
type crossing struct {
	ctx         context.Context
	free        throttle.Limiter // it holds nobody
	junction    shaping.Junction
	left, right *shaping.Roster
	departed    map[string]*atomic.Int64
}

// newCrossing returns a crossing in which some queues are busy at each limiter.
func newCrossing(ctx context.Context, t *testing.T, queues, right int, offset time.Duration) *crossing {
	c := &crossing{ctx: ctx, free: newLimiter(t), departed: make(map[string]*atomic.Int64)}
	c.left = c.junction.NewRoster("left", shaping.NewQueue(newLimiter(t, throttle.LeakyBucket(100, time.Second))))
	c.right = c.junction.NewRoster("right", shaping.NewQueue(newLimiter(t, throttle.LeakyBucket(right, time.Second))))
	for range queues {
		c.busy("left", shaping.PriorityNormal, c.left)
	}
	time.Sleep(offset)
	for range queues {
		c.busy("right", shaping.PriorityNormal, c.right)
	}
	return c
}

// busy opens a queue of its own share, in which two callers of a class always wait.
func (c *crossing) busy(kind string, class shaping.Priority, rosters ...*shaping.Roster) {
	q := c.junction.NewQueue(append([]*shaping.Roster{c.junction.NewRoster(kind, shaping.NewQueue(c.free))}, rosters...)...)
	q.LowPriorityShare = 0.1
	n := c.departed[kind]
	if n == nil {
		n = new(atomic.Int64)
		c.departed[kind] = n
	}
	for range 2 {
		go func() {
			for q.Wait(shaping.WithPriority(c.ctx, class)) == nil {
				n.Add(1)
			}
		}()
		synctest.Wait()
	}
}

// offsets are whiles between permits of the two limiters.
var offsets = []time.Duration{0, 2 * time.Millisecond, 5 * time.Millisecond}

// A queue that needs two limiters, each of which is busy for others, has its share.
func TestCallersOfTwoBusyLimitersHaveTheirShare(t *testing.T) {
	for _, right := range []int{100, 37} {
		for _, others := range []int{1, 3, 30} {
			for _, offset := range offsets {
				if testing.Short() && (offset > 0 || right == 100 && others == 30) {
					continue // the slow one has as many callers
				}
				t.Run(fmt.Sprint(right, others, offset), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { share(t, right, others, offset) })
				})
			}
		}
	}
}

func share(t *testing.T, right, others int, offset time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := newCrossing(ctx, t, others, right, offset)
	c.busy("both", shaping.PriorityNormal, c.left, c.right)
	c.busy("both", shaping.PriorityNormal, c.right, c.left)
	<-ctx.Done()
	synctest.Wait()
	both := int(c.departed["both"].Load())
	if fair := 2 * 20 * right / (others + 2); both < fair*2/5 {
		t.Errorf("%d departures of both, want two fifths of the fair %d", both, fair)
	}
	for kind, rate := range map[string]int{"left": 100, "right": right} {
		if all, most := both+int(c.departed[kind].Load()), 20*rate; all < most*9/10 {
			t.Errorf("%d departures at the %s one, want nine tenths of %d", all, kind, most)
		}
	}
}

// A low class, too, has its share among more urgent callers of each limiter.
func TestLowCallersOfTwoBusyLimitersHaveTheirShare(t *testing.T) {
	for _, offset := range offsets {
		t.Run(fmt.Sprint(offset), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				c := newCrossing(ctx, t, 1, 100, offset)
				c.busy("low left", shaping.PriorityLow, c.left)
				c.busy("low right", shaping.PriorityLow, c.right)
				c.busy("both", shaping.PriorityLow, c.left, c.right)
				<-ctx.Done()
				synctest.Wait()
				low, both := c.departed["low left"].Load(), c.departed["both"].Load()
				if both < 50 {
					t.Errorf("%d low departures of both, want half of the fair 100", both)
				}
				if all := low + both; all > 220 {
					t.Errorf("%d low departures, want 220 at most of 2,000 at a share of 0.1", all)
				}
			})
		})
	}
}

// A thousand customers who wait for one account have the same of it, however many callers
// each of them has.
func TestAThousandCustomersShareTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const customers, rounds = 1000, 4
		ctx, cancel := context.WithCancel(t.Context())
		var junction shaping.Junction
		account := junction.NewRoster("account", shaping.NewQueue(newLimiter(t, throttle.LeakyBucket(1000, time.Second))))
		departed := make([]atomic.Int64, customers)
		for i := range customers {
			q := junction.NewQueue(junction.NewRoster("customer", shaping.NewQueue(newLimiter(t, throttle.TokenBucket(50, time.Second, 50)))), account)
			for range 1 + i%3 { // all wait again at once
				go func() {
					for q.Wait(ctx) == nil {
						departed[i].Add(1)
					}
				}()
			}
		}
		time.Sleep(rounds*time.Second - time.Millisecond/2)
		cancel()
		synctest.Wait()
		least, most, all := int64(customers*rounds), int64(0), int64(0)
		for i := range departed {
			n := departed[i].Load()
			least, most, all = min(least, n), max(most, n), all+n
		}
		if least < rounds-1 || most > rounds+1 || all != customers*rounds {
			t.Errorf("%d departures, %d to %d of each customer, want %d, and %d of each, give or take one", all, least, most, customers*rounds, rounds)
		}
	})
}

// Callers of queues that differ in parts alone go in the order in which they came. Those of another
// queue take turns with them.
func TestQueuesOfDifferentPartsCountAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var junction shaping.Junction
		free := newLimiter(t)
		account := junction.NewRoster("account", shaping.NewQueue(newLimiter(t, throttle.LeakyBucket(1, time.Second))))
		customers := map[byte]*shaping.Roster{'a': junction.NewRoster("a", shaping.NewQueue(free)), 'b': junction.NewRoster("b", shaping.NewQueue(free))}
		queues := make(map[string]*shaping.Queue)
		for _, c := range []string{"a", "b"} {
			queues[c] = junction.NewQueue(customers[c[0]], account)
			for _, part := range []string{"x", "y"} {
				queues[c+part] = junction.NewQueue(customers[c[0]], account, junction.NewPart(part, shaping.NewQueue(free)))
			}
		}
		var mu sync.Mutex
		var left []string
		var wg sync.WaitGroup
		for _, name := range []string{"a", "a", "ax", "ay", "a", "ax", "bx", "b"} {
			wg.Go(func() {
				if err := queues[name].Wait(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				left = append(left, name)
			})
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		for name, before := range map[string]int{"ax": 7, "ay": 7, "b": 5, "bx": 5} {
			if f, err := queues[name].Forecast(t.Context(), &shaping.Turn{N: 1}); err != nil || f.Waiting != before {
				t.Errorf("forecast of %s = %+v, %v, want %d before it", name, f, err, before)
			}
		}
		wg.Wait()
		if want := []string{"a", "a", "bx", "ax", "b", "ay", "a", "ax"}; !slices.Equal(left, want) {
			t.Errorf("callers left as %v, want %v", left, want)
		}
	})
}
