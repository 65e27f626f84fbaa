package limits_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Bulk never takes the last place in flight, though its class is owed a share. So an urgent call
// reaches the vendor at once.
func TestUrgentCallsHaveReservedPlacesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Service: 100 * time.Millisecond}
		r := harness.ObeyingRig(t, vendor, &weir.Transport{InFlight: weir.InFlight{Max: 4, Reserve: 1}, Line: weir.Line{LowPriorityShare: 0.5}})
		ctx, cancel := context.WithCancel(shaping.WithPriority(t.Context(), shaping.PriorityLow))
		for range 20 {
			go func() {
				for ctx.Err() == nil {
					r.Get(ctx, "bulk")
				}
			}()
		}
		for range 30 {
			time.Sleep(130 * time.Millisecond)
			began := r.Now()
			r.Want("an urgent call", r.Get(shaping.WithPriority(t.Context(), shaping.PriorityHigh), "urgent"), 200)
			if took := r.Now() - began; took != 100*time.Millisecond {
				t.Errorf("an urgent call took %v, want the 100ms of its answer", took)
			}
		}
		cancel()
		if bulk := len(r.Vendor.Arrivals()) - 30; bulk < 150 {
			t.Errorf("%d bulk calls arrived in 7 s, want three at a time", bulk)
		}
	})
}

// Bulk of 100,000 calls begins at midnight, 25,000 at a time, with 20,000 for the day. Each one-time
// password departs at once, even in the last hour. At midnight the vendor has served all 20,000.
func TestOneTimePasswordsPassTheBulkOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight
		const each, day = 4, 24 * time.Hour
		workers := 25_000
		if testing.Short() {
			workers = 6000
		}
		limit, err := throttle.ParseLimit("fixed 20000/d reserve 10%")
		if err != nil {
			t.Fatal(err)
		}
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{limit}, Line: weir.Line{MaxWaiting: workers + 1}, InFlight: weir.InFlight{Max: 100, Reserve: 10},
		})
		ctx, cancel := context.WithCancel(shaping.WithPriority(t.Context(), shaping.PriorityLow))
		var served atomic.Int64
		for range workers {
			go func() {
				for range each {
					if r.Get(ctx, "bulk").Err == nil {
						served.Add(1)
					}
				}
			}()
		}
		for hour := range 24 {
			time.Sleep(time.Until(r.Vendor.Start().Add(time.Duration(hour)*time.Hour + 10*time.Minute)))
			for range 3 {
				began := r.Now()
				r.Want("a password", r.Get(shaping.WithPriority(t.Context(), shaping.PriorityHigh), "password"), 200)
				if took := r.Now() - began; took != 0 {
					t.Errorf("a password took %v after %v, want 0s", took, began)
				}
			}
		}
		time.Sleep(time.Until(r.Vendor.Start().Add(day - 1)))
		if got := served.Load(); got != 20_000-3*24 {
			t.Errorf("%d calls of bulk were served in the day beside 72 passwords, want 19,928", got)
		}
		cancel()
		synctest.Wait()
	})
}
