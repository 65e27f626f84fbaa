package shaping_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// In real time, with everything at once: each caller comes out once, none stays in line, and the
// departures keep the bound.
func TestQueueKeepsTheBoundUnderChurn(t *testing.T) {
	const rate, burst, workers, each = 5000, 10, 32, 60
	q := newQueue(t, throttle.TokenBucket(rate, time.Second, burst))
	q.MaxWaiting = workers - 4
	var departed, refused, cancelled atomic.Int64
	instants := make([][]throttle.Instant, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for range each {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(30))*time.Millisecond)
				if rand.IntN(4) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(5_000_000)), cancel)
				}
				turn := shaping.Turn{N: 1}
				switch err := q.WaitTurn(ctx, &turn); {
				case err == nil:
					departed.Add(1)
					instants[i] = append(instants[i], q.Now())
					if rand.IntN(8) == 0 {
						q.Return(&turn) // it departed all the same: a stricter test
						instants[i] = instants[i][:len(instants[i])-1]
					}
				case errors.Is(err, shaping.ErrQueueFull), errors.Is(err, shaping.ErrDeadline):
					refused.Add(1)
				case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
					cancelled.Add(1)
				default:
					t.Errorf("WaitTurn() = %v", err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if sum := departed.Load() + refused.Load() + cancelled.Load(); sum != workers*each {
		t.Errorf("%d departed, %d were refused, %d gave up: %d of %d came out", departed.Load(), refused.Load(), cancelled.Load(), sum, workers*each)
	}
	if s := q.State(); s.Waiting != 0 {
		t.Errorf("%d in line at the end", s.Waiting)
	}
	all := slices.Sorted(slices.Values(slices.Concat(instants...)))
	first, last := all[0], all[len(all)-1]
	// One-sided: late wake-ups only spread the departures.
	const tolerance = 2 * 10 * time.Millisecond
	if most := burst + rate*(last.Sub(first)+tolerance).Seconds(); float64(len(all)) > most {
		t.Errorf("%d departed in %v, more than %.0f", len(all), last.Sub(first), most)
	}
}

func TestQueueSurvivesControlsUnderChurn(t *testing.T) {
	q := newQueue(t, throttle.LeakyBucket(20_000, time.Second))
	q.Hook = &shaping.Hook{Wait: func(context.Context, shaping.Wait) func(error) { return func(error) {} }}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			turn := shaping.Turn{N: 1, MaxWait: 50 * time.Millisecond}
			for range 100 {
				err := q.WaitTurn(t.Context(), &turn)
				if err != nil && !errors.Is(err, shaping.ErrDeadline) && !errors.Is(err, shaping.ErrClosed) {
					t.Errorf("WaitTurn() = %v", err)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 50 {
			q.Pause(time.Duration(rand.IntN(200)) * time.Microsecond)
			if err := q.Tune(throttle.LeakyBucket(10_000+i*100, time.Second)); err != nil {
				t.Errorf("Tune() = %v", err)
			}
			q.Reconcile(throttle.Fact{Resumed: i%10 == 0})
			q.State()
			q.Settle(shaping.Departure{Grant: throttle.Grant{At: q.Now()}}, throttle.Request{})
		}
	})
	wg.Wait()
	q.Close()
	if s := q.State(); s.Waiting != 0 {
		t.Errorf("%d in line at the end", s.Waiting)
	}
}
