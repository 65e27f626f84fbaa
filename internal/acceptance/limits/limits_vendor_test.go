package limits_test

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A crossing is the departures from a Transport and the arrivals at the vendor.
type crossing struct {
	left, arrived testserver.Arrivals
	spread        time.Duration // between the longest and the shortest trip
}

// cross makes 150 workers send under a limit over real sockets.
func cross(t *testing.T, limit throttle.Limit) (c crossing) {
	var mu sync.Mutex
	vendor := &testserver.Vendor{}
	server := testserver.Run(t, testserver.Listen, vendor)
	start, base := vendor.Start(), server.Transport()
	transport := &weir.Transport{Limits: []throttle.Limit{limit}, Learn: weir.LearnOff, Base: harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
		at := time.Since(start)
		mu.Lock()
		req.Header.Set(testserver.DefaultIDHeader, strconv.Itoa(len(c.left)))
		c.left = append(c.left, testserver.Arrival{At: at})
		mu.Unlock()
		return base.RoundTrip(req)
	})}
	defer transport.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	var workers sync.WaitGroup
	for range 150 {
		workers.Go(func() {
			for ctx.Err() == nil {
				harness.Sent(ctx, transport, server.URL)
			}
		})
	}
	workers.Wait()
	c.arrived = vendor.Arrivals()
	least, most := time.Hour, time.Duration(0)
	for _, a := range c.arrived {
		i, _ := strconv.Atoi(a.ID)
		least, most = min(least, a.At-c.left[i].At), max(most, a.At-c.left[i].At)
	}
	c.spread = max(0, most-least)
	slices.SortFunc(c.left, func(a, b testserver.Arrival) int { return cmp.Compare(a.At, b.At) })
	return c
}

// The limits by README's formulas for a vendor of 100 in any second, which counts arrivals. Delays
// differ by up to 75 ms. If a busy machine makes them differ by more, the asserted span is shorter
// by that. A worker stopped between its permit and the base departs late, unmeasured, so a case may
// try three times.
func TestLimitsKeepAVendorsWindow(t *testing.T) {
	const most, window, differ = 100, time.Second, 75 * time.Millisecond
	for _, tt := range []struct {
		limit string
		short time.Duration // by which the kept span is shorter
	}{
		{"log 100/1s", differ + 20*time.Millisecond}, // of the vendor's length: more arrive
		{"log 100/1.1s", 0},
		{"log 31/500ms", 0},
		{"sliding 47/1s", 0},
		{"fixed 23/500ms", 0},
		{"50/s burst 44", 0},
		{"80/s burst 11", 0},
	} {
		t.Run(tt.limit, func(t *testing.T) {
			t.Parallel()
			limit, err := throttle.ParseLimit(tt.limit)
			if err != nil {
				t.Fatal(err)
			}
			var left, arrived int
			for range 3 {
				c := cross(t, limit)
				span := window - tt.short
				left, arrived = c.left.MaxIn(span), c.arrived.MaxIn(span-max(0, c.spread-differ))
				t.Logf("at most %d left and %d arrived in %v, at delays that differ by %v", c.left.MaxIn(window), c.arrived.MaxIn(window), window, c.spread)
				if len(c.arrived) >= most/4 && left <= most && arrived <= most {
					return
				}
			}
			t.Errorf("%d left and %d arrived, want %d at most, and some", left, arrived, most)
		})
	}
}
