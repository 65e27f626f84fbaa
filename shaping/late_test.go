package shaping

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/throttle"
)

// A crowdOfLate is callers that come together and wake up late, after different naps.
type crowdOfLate struct {
	q    *Queue
	paid *tally

	mu   sync.Mutex
	left []time.Duration // since the crowd came; in order
	of   []int           // whose departure it was
}

func newCrowdOfLate(t *testing.T, limits ...throttle.Limit) *crowdOfLate {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("test", limits...)
	if err != nil {
		t.Fatal(err)
	}
	paid := &tally{Limiter: limiter}
	return &crowdOfLate{q: NewQueue(paid), paid: paid}
}

// leave makes n callers wait, each with its context, and returns once all have left. A queue that
// stops is closed after ten minutes.
func (c *crowdOfLate) leave(t *testing.T, n int, ctx func(i int) context.Context) {
	t.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			err := c.q.Wait(ctx(i))
			switch {
			case err == nil:
				c.mu.Lock()
				defer c.mu.Unlock()
				c.left, c.of = append(c.left, time.Since(start)), append(c.of, i)
			case !errors.Is(err, context.Canceled):
				t.Errorf("caller %d: %v", i, err)
			}
		})
		synctest.Wait()
	}
	stuck := time.AfterFunc(10*time.Minute, func() { c.q.Close() })
	defer stuck.Stop()
	wg.Wait()
	if spent := int(c.paid.spent.Load()); spent != len(c.left) {
		t.Errorf("%d callers left for %d permits", len(c.left), spent)
	}
}

// within fails if more callers left in a span than the limit and the tolerance allow.
func (c *crowdOfLate) within(t *testing.T, l throttle.Limit) {
	t.Helper()
	for i, from := range c.left {
		for k, to := range c.left[i:] {
			if n, most := k+1, mostIn(l, to-from+throttle.Tolerance(l)); n > most {
				t.Errorf("%v: %d left within %v, want at most %d", l, n, to-from, most)
				return
			}
		}
	}
}

// mostIn returns how many calls a vendor with the limit serves in a span.
func mostIn(l throttle.Limit, span time.Duration) int {
	switch l.Algorithm {
	case throttle.AlgorithmSlidingLog:
		return l.Permits * (int(span/l.Per) + 1)
	case throttle.AlgorithmFixedWindow, throttle.AlgorithmSlidingWindow:
		return l.Permits * (int(span/l.Per) + 2)
	default:
		return max(l.Burst, 1) + int(int64(span)*int64(l.Permits)/int64(l.Per))
	}
}

func windowed(l throttle.Limit) bool {
	return l.Algorithm == throttle.AlgorithmFixedWindow || l.Algorithm == throttle.AlgorithmSlidingLog || l.Algorithm == throttle.AlgorithmSlidingWindow
}

// limitsAt returns a limit of each algorithm at a rate per second.
func limitsAt(rate int) []throttle.Limit {
	ten := 10 * time.Second / time.Duration(rate)
	return []throttle.Limit{
		throttle.LeakyBucket(rate, time.Second), throttle.TokenBucket(rate, time.Second, 10), throttle.GCRA(rate, time.Second, 3),
		throttle.FixedWindow(10, ten), throttle.SlidingLog(10, ten), throttle.SlidingWindow(10, ten),
	}
}

// Callers that all wake up late depart at half of a bucket's rate at least. A window loses more if
// they are late by a multiple of it. Callers that run as it opens would take its permits before
// sleepers get them. So no caller runs as the next window opens.
func TestCallersThatAllWakeLateKeepHalfTheRate(t *testing.T) {
	const callers = 64
	for _, rate := range []int{10, 50, 100, 333, 1000} {
		for _, limit := range limitsAt(rate) {
			for i, ms := range []int{1, 7, 13, 20, 21, 29, 40, 47, 50, 51, 73, 97, 100, 101, 127, 149, 151, 199, 200} {
				if i%4 > 0 && testing.Short() {
					continue
				}
				late := time.Duration(ms) * time.Millisecond
				synctest.Test(t, func(t *testing.T) {
					c := newCrowdOfLate(t, limit)
					c.leave(t, callers, func(int) context.Context { return sleeper{t.Context(), c.q, late} })
					c.within(t, limit)
					most := 2*callers*time.Second/time.Duration(rate) + 2*late // they are also late to join the line
					if windowed(limit) {
						most *= 2
					}
					if n := len(c.left); n < callers || c.left[n-1] > most {
						t.Errorf("%v, late by %v: %d of %d callers left, the last at %v, want by %v", limit, late, n, callers, slices.Max(c.left), most)
					}
				})
			}
		}
	}
}

// Callers that are late or give up at random depart within the limit, and neither lose a permit nor
// get one for free.
func TestCallersLateByChanceStayWithinTheLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.SampledFrom(slices.Concat(limitsAt(20), limitsAt(100), limitsAt(1000))).Draw(rt, "limit")
		longest := time.Duration(rapid.IntRange(1, 200).Draw(rt, "longest nap")) * time.Millisecond
		quits := rapid.SliceOfN(rapid.IntRange(0, 3000), 40, 40).Draw(rt, "gives up after ms")
		synctest.Test(t, func(t *testing.T) {
			c := newCrowdOfLate(t, limit)
			c.leave(t, len(quits), func(i int) context.Context {
				ctx, cancel := context.WithCancel(t.Context())
				if i%3 == 0 {
					time.AfterFunc(time.Duration(quits[i])*time.Millisecond+1, cancel)
				} else {
					t.Cleanup(cancel)
				}
				return sleeper{ctx, c.q, rand.N(longest)}
			})
			c.within(t, limit)
			if n := c.q.Waiting(); n > 0 || c.q.asleep != nil && len(c.q.asleep.list) > 0 {
				t.Errorf("at the end %d are in line, and %+v asleep", n, c.q.asleep)
			}
		})
	})
}

// A late caller takes the permit of one granted after it, so urgent callers still depart before all
// others.
func TestLateCallersLeaveByClass(t *testing.T) {
	for _, late := range []time.Duration{21 * time.Millisecond, 47 * time.Millisecond, 151 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowdOfLate(t, throttle.LeakyBucket(100, time.Second))
			c.q.LowPriorityShare = -1
			c.leave(t, 64, func(i int) context.Context {
				p := PriorityHigh
				if i < 32 {
					p = PriorityNormal
				}
				return WithPriority(sleeper{t.Context(), c.q, late}, p)
			})
			rest := c.of[1:] // the first one found the line empty
			if !slices.IsSortedFunc(rest, func(a, b int) int { return cmp.Compare(b/32, a/32) }) {
				t.Errorf("late by %v, the callers left in the order %v, want those from 32 on first", late, c.of)
			}
		})
	}
}
