package limits_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
)

// Bulk never takes the last place in flight, though its class is owed a share. So an urgent call
// reaches the vendor in the instant in which it is made.
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
