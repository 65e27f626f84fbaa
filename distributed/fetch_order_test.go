package distributed_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// callers are workers of one kind, who call again after departing, at once or later.
type callers struct {
	workers  int
	priority shaping.Priority
	tenant   string
	most     int  // permits of a call
	any      bool // each call asks for a different number
	every    time.Duration
	retries  bool          // every other call is retried with its turn
	least    float64       // share of all permits
	waits    time.Duration // longest wait, if time is exact; zero: any
}

// had is what callers of one kind received.
type had struct {
	permits int
	longest time.Duration // wait
}

// mixedCosts are callers with different costs, at 300/s with a burst of 10.
var mixedCosts = map[string][]callers{
	"high 1, low 2": {
		{workers: 30, priority: shaping.PriorityHigh, most: 1, least: 0.9, waits: 300 * time.Millisecond},
		{workers: 30, priority: shaping.PriorityLow, most: 2, least: 0.04},
	},
	"high 1, low 10": {
		{workers: 30, priority: shaping.PriorityHigh, most: 1, least: 0.9, waits: 300 * time.Millisecond},
		{workers: 30, priority: shaping.PriorityLow, most: 10, least: 0.02},
	},
	"high 10, low 1": {
		{workers: 30, priority: shaping.PriorityHigh, most: 10, least: 0.9},
		{workers: 30, priority: shaping.PriorityLow, most: 1, least: 0.04},
	},
	"a single call of 1 beside a flood of 10": {
		{workers: 1, tenant: "single", most: 1, every: 100 * time.Millisecond, least: 0.01, waits: 250 * time.Millisecond},
		{workers: 30, tenant: "flood", most: 10, least: 0.9},
	},
	"an urgent call of 1 beside a flood of 10": {
		{workers: 1, priority: shaping.PriorityHigh, most: 1, every: 100 * time.Millisecond, least: 0.01, waits: 250 * time.Millisecond},
		{workers: 30, most: 10, least: 0.9},
	},
	"any costs of classes": {
		{workers: 30, priority: shaping.PriorityHigh, most: 10, any: true, least: 0.9},
		{workers: 30, priority: shaping.PriorityLow, most: 10, any: true, least: 0.03},
	},
	"any costs of tenants": {
		{workers: 10, tenant: "a", most: 10, any: true, least: 0.3},
		{workers: 10, tenant: "b", most: 10, any: true, least: 0.3},
		{workers: 3, tenant: "c", most: 3, any: true, every: 50 * time.Millisecond, least: 0.02, waits: time.Second},
	},
	"any costs of retries": {
		{workers: 20, tenant: "a", most: 10, any: true, retries: true, least: 0.3},
		{workers: 20, tenant: "b", most: 10, any: true, retries: true, least: 0.3},
		{workers: 3, priority: shaping.PriorityHigh, most: 10, any: true, every: 200 * time.Millisecond, retries: true, least: 0.05, waits: time.Second},
	},
}

// call runs callers of all kinds in a queue, and returns what each kind received in a window after
// a warm-up.
func call(t *testing.T, q *shaping.Queue, all []callers, warm, window time.Duration) []had {
	ctx, cancel := context.WithCancel(t.Context())
	got, start := make([]had, len(all)), time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, c := range all {
		for w := range c.workers {
			random := rand.New(rand.NewPCG(uint64(i), uint64(w)))
			wg.Go(func() {
				for ctx.Err() == nil {
					turn := shaping.Turn{N: c.most, Priority: c.priority, Tenant: c.tenant}
					for range 1 + random.IntN(2) {
						if c.any {
							turn.N = 1 + random.IntN(c.most)
						}
						began := time.Now()
						if q.WaitTurn(ctx, &turn) != nil {
							return
						}
						if at := time.Since(start); at > warm && at <= warm+window {
							mu.Lock()
							got[i] = had{got[i].permits + turn.N, max(got[i].longest, time.Since(began))}
							mu.Unlock()
						}
						rest(ctx, c.every)
						if !c.retries {
							break
						}
					}
				}
			})
		}
	}
	time.Sleep(warm + window)
	cancel()
	wg.Wait()
	return got
}

// manyOf multiplies the workers that call again at once by five: thirty of them leave their line
// empty on a machine that stops for moments.
func manyOf(all []callers) []callers {
	all = slices.Clone(all)
	for i := range all {
		if all[i].every == 0 {
			all[i].workers *= 5
		}
	}
	return all
}

// judge returns the permits of all kinds, and whether each kind had its least share.
func judge(all []callers, got []had) (sum int, shared bool) {
	for _, h := range got {
		sum += h.permits
	}
	shared = true
	for i, c := range all {
		shared = shared && float64(got[i].permits) >= c.least*float64(sum)
	}
	return sum, shared
}

// Callers of different costs use the whole rate in any order, and none starves.
func TestCallersOfDifferentCostsUseTheWholeRate(t *testing.T) {
	for name, all := range mixedCosts {
		if testing.Short() && name != "any costs of retries" && name != "an urgent call of 1 beside a flood of 10" {
			continue // the callers of each row do the same, and the real Redis gets all rows
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newBubbleFleet(t, 1, time.Millisecond, throttle.TokenBucket(300, time.Second, 10))
				got := call(t, f.queues[0], all, time.Second, 10*time.Second)
				sum, shared := judge(all, got)
				t.Logf("of 3000 permits %d were used: %+v", sum, got)
				if sum < 2970 || !shared {
					t.Errorf("of 3000 permits %d were used: %+v, want 2970 at least and each kind its share", sum, got)
				}
				for i, c := range all {
					if c.waits > 0 && got[i].longest > c.waits {
						t.Errorf("one of the callers %d waited for %v, want %v at most", i, got[i].longest, c.waits)
					}
				}
			})
		})
	}
}

// A permit whose caller has given up does not make the store scan a long line to its end.
func TestALongLineIsNotLookedAtToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, time.Millisecond, throttle.TokenBucket(300, time.Second, 10))
		f.meet()
		q, l := f.queues[0], f.limiters[0]
		l.(throttle.Remote).Fetch(q.Now(), 1, slices.Values([]throttle.Request{{N: 1}}))
		time.Sleep(5 * time.Millisecond)
		holder := l.(store.Lender)
		for at, want := range map[int]int{100: 100, 100_000: -1} {
			looked := 0
			place := holder.Holder(q.Now(), func(yield func(throttle.Request) bool) {
				for yield(throttle.Request{N: 10}) {
					if looked++; looked == at {
						yield(throttle.Request{N: 1})
						return
					}
				}
			})
			if place != want || looked > 5000 {
				t.Errorf("Holder() = %d after %d looks for a caller at %d, want %d after 5000 at most", place, looked, at, want)
			}
		}
		l.(throttle.Remote).Fetch(q.Now(), 0, nil)
	})
}
