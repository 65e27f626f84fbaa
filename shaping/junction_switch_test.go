package shaping_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// leaves returns who left a queue when, of callers of some classes and tenants. Its limiter
// gets a roster at an instant, and the caller of another queue; zero: neither.
func leaves(t *testing.T, seed uint64, at time.Duration) (all []string) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		q := shaping.NewQueue(newLimiter(t, throttle.LeakyBucket(1, time.Second)))
		began := time.Now()
		var mu sync.Mutex
		var wg sync.WaitGroup
		for id := range 20 {
			ctx := shaping.WithPriority(t.Context(), []shaping.Priority{shaping.PriorityLow, 0, shaping.PriorityHigh}[r.IntN(3)])
			ctx = shaping.WithTenant(ctx, []string{"", "a", "b"}[r.IntN(3)], 1+r.IntN(3))
			turn := shaping.Turn{N: 1 + r.IntN(2)}
			wg.Go(func() {
				if err := q.WaitTurn(ctx, &turn); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, fmt.Sprint(id, " at ", time.Since(began)))
			})
			synctest.Wait()
			time.Sleep(time.Duration(r.IntN(3)) * 100 * time.Millisecond)
		}
		if at > 0 {
			time.Sleep(at)
			var junction shaping.Junction
			free := junction.NewPart("part", shaping.NewQueue(newLimiter(t)))
			other := junction.NewQueue(junction.NewRoster("lane", q), free)
			defer other.Close()
			ctx := shaping.WithPriority(t.Context(), shaping.PriorityLow-1)
			wg.Go(func() {
				if err := other.WaitTurn(ctx, new(shaping.Turn)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	return all
}

// Callers in line keep their places, and their instants, when others come to need their limiter.
func TestCallersInLineKeepTheirPlacesInRoster(t *testing.T) {
	for seed := range uint64(200) {
		want, got := leaves(t, seed, 0), leaves(t, seed, time.Duration(1+seed%9)*500*time.Millisecond)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: with a roster they left as %v, want %v", seed, got, want)
		}
	}
}

// A queue and others that need its limiter share one line: urgent callers of one go before eight
// others, who came first and wait in the other.
func TestQueueWithRosterSharesItsLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var junction shaping.Junction
		q := shaping.NewQueue(newLimiter(t, throttle.LeakyBucket(1, time.Second)))
		began := time.Now()
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		last := make(map[shaping.Priority]time.Duration)
		var mu sync.Mutex
		come := func(q *shaping.Queue, n int, class shaping.Priority) {
			for range n {
				wg.Go(func() {
					if err := q.Wait(shaping.WithPriority(t.Context(), class)); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					last[class] = time.Since(began)
				})
			}
			synctest.Wait()
		}
		come(q, 8, shaping.PriorityLow)
		other := junction.NewQueue(junction.NewRoster("lane", q), junction.NewPart("part", shaping.NewQueue(newLimiter(t))))
		come(other, 3, shaping.PriorityHigh)
		if n := q.Waiting(); n != 11 {
			t.Errorf("%d wait, want 11", n)
		}
		want := []shaping.Standing{{Priority: shaping.PriorityLow, Waiting: 8}, {Priority: shaping.PriorityHigh, Waiting: 3}}
		if got := q.Standings(); !slices.Equal(got, want) {
			t.Errorf("%v stand in line, want %v", got, want)
		}
		wg.Wait()
		if last[shaping.PriorityHigh] != 3*time.Second || last[shaping.PriorityLow] != 11*time.Second {
			t.Errorf("the last ones left at %v, want 3s for the urgent ones and 11s for the others", last)
		}
	})
}

// A call in flight fills the limiter while the roster is made. The caller in line goes when it ends.
func TestCallerInLineIsWokenThroughRoster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &booth{gap: time.Second, state: boothState{closed: true}}
		q := shaping.NewQueue(b)
		began := time.Now()
		left := make(chan time.Duration, 1)
		go func() {
			if err := q.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			left <- time.Since(began)
		}()
		synctest.Wait()
		new(shaping.Junction).NewRoster("lane", q)
		time.Sleep(time.Second)
		b.mu.Lock()
		b.state.closed = false
		b.mu.Unlock()
		b.wake()
		if got := <-left; got != time.Second {
			t.Errorf("the caller left at %v, want 1s", got)
		}
	})
}

// Permits that were granted before the roster was made go back after it.
func TestPermitsFromBeforeRosterGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &stamped{Limiter: newLimiter(t, throttle.TokenBucket(1, time.Hour, 1)), stamp: 7}
		q := shaping.NewQueue(limiter)
		turn := &shaping.Turn{N: 1}
		if err := q.WaitTurn(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
		var junction shaping.Junction
		other := junction.NewQueue(junction.NewRoster("lane", q), junction.NewRoster("route", shaping.NewQueue(newLimiter(t))))
		q.Return(turn)
		if limiter.back != 7 {
			t.Errorf("the limiter got the grant of %d back, want that of 7", limiter.back)
		}
		if err := other.WaitTurn(t.Context(), &shaping.Turn{N: 1, MaxWait: time.Second}); err != nil {
			t.Error(err)
		}
	})
}

// A queue with a roster takes limits that are more than they were, and costs of each.
func TestQueueWithRosterTakesMoreLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := shaping.NewQueue(newLimiter(t, throttle.TokenBucket(100, time.Second, 100)))
		new(shaping.Junction).NewRoster("lane", q)
		if err := q.Tune(throttle.TokenBucket(100, time.Second, 100), throttle.TokenBucket(1, time.Minute, 5)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, want := range []time.Duration{0, time.Minute} {
			if err := q.WaitTurn(t.Context(), &shaping.Turn{Each: []int{1, 3}}); err != nil || time.Since(began) != want {
				t.Errorf("a caller of three left at %v, %v, want %v", time.Since(began), err, want)
			}
		}
	})
}

// A settling is a booth that is free again once a departure is settled. Before that it calls open.
type settling struct {
	*booth
	open func()
}

func (s *settling) Settle(throttle.Instant, throttle.Grant, throttle.Request, throttle.Request) {
	s.open()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.free = 0
}

// A departure is settled while the roster is made. A caller of another queue, who has just come,
// goes with what came back.
func TestSettlementDuringSwitchWakesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &settling{booth: &booth{gap: time.Hour}}
		q, began := shaping.NewQueue(s), time.Now()
		turn := &shaping.Turn{N: 1}
		if err := q.WaitTurn(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
		left := make(chan time.Duration, 1)
		s.open = func() {
			var junction shaping.Junction
			other := junction.NewQueue(junction.NewRoster("lane", q), junction.NewPart("part", shaping.NewQueue(newLimiter(t))))
			go func() {
				if err := other.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				left <- time.Since(began)
			}()
			synctest.Wait()
		}
		q.Settle(turn.Departure(), throttle.Request{})
		if got := <-left; got != 0 {
			t.Errorf("the other caller left after %v, want at once", got)
		}
	})
}
