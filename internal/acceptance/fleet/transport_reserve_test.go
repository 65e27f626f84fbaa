package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/testserver"
)

// Bulk of both replicas gets three of four places. An urgent call at either waits no longer than
// one call to Redis. The vendor sees at most four calls at a time.
func TestUrgentCallsHaveReservedPlacesInAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const service = 100 * time.Millisecond
		vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(4)}, Service: service}
		f := newSquadron(t, 2, 4, vendor)
		for _, r := range f.Replicas {
			r.Transport.InFlight.Reserve = 1
		}
		ctx, cancel := context.WithCancel(t.Context())
		for _, r := range f.Replicas {
			for range 10 {
				go func() {
					for ctx.Err() == nil {
						r.Get(ctx, "bulk")
					}
				}()
			}
		}
		time.Sleep(time.Second)
		for i := range 40 {
			time.Sleep(173 * time.Millisecond)
			r := f.Replicas[i%2]
			began := r.Now()
			r.Want("an urgent call", r.Get(weir.WithPriority(t.Context(), weir.PriorityHigh), "urgent"), 200)
			if took := r.Now() - began; took > service+10*time.Millisecond {
				t.Errorf("an urgent call at replica %d took %v, want the %v of its answer", i%2, took, service)
			}
		}
		cancel()
		arrivals := vendor.Arrivals()
		if refused := len(arrivals) - len(arrivals.Granted()); refused > 0 {
			t.Errorf("%d of %d calls were refused", refused, len(arrivals))
		}
		if bulk := len(arrivals) - 40; bulk < 280 {
			t.Errorf("%d bulk calls arrived in 12 s, want three at a time", bulk)
		}
	})
}
