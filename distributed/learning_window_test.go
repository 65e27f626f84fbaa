package distributed_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/testserver"
)

// Eight processes that learn a window spend it as calls come, as one process does, but for a few
// permits whose calls find its end. No process stops while the window has room. Near its end each
// may hold a permit dated seconds ahead. It must neither keep that into the next window, nor spend
// another for it. A step of Redis's clock costs at most the rest of one window.
func TestNoProcessStopsInAWindowWithRoom(t *testing.T) {
	for _, c := range []struct {
		limit  testserver.Limit
		resets bool
		step   time.Duration // of Redis's clock, 15 s after the start
	}{
		{limit: testserver.FixedWindow(120, 6*time.Second)},
		{limit: testserver.FixedWindow(120, 6*time.Second), resets: true},
		{limit: testserver.FixedWindow(120, 6*time.Second), step: -time.Hour},
		{limit: testserver.FixedWindow(300, 15*time.Second)},
		{limit: testserver.FixedWindow(300, 15*time.Second), resets: true},
	} {
		if raced && (!c.resets || c.limit.Permits > 120) || c.step == 0 && !long && !c.resets && c.limit.Permits > 120 {
			continue // the detector makes the script's interpreter ten times slower
		}
		t.Run(fmt.Sprintf("%v, resets %v, step %v", c.limit, c.resets, c.step), func(t *testing.T) {
			t.Parallel()
			most := 3 * time.Second // one process: 1.1 s
			if c.step != 0 {
				most = c.limit.Per + time.Second
			}
			few := 6
			if !c.resets { // single calls probe for the next window
				few = 12
			}
			// In one of some dozens of runs a window loses more, so a bad run is repeated once.
			for again := 1; again >= 0; again-- {
				idle, refused := standStill(t, c.limit, c.resets, c.step)
				text := fmt.Sprintf("nobody departed for %v, though the window had room, and %d were refused", idle, refused)
				t.Log(text)
				if idle <= most && refused <= few {
					break
				}
				if again == 0 {
					t.Errorf("twice, lately %s; want %v and %d at most", text, most, few)
				}
			}
		})
	}
}

// standStill runs eight processes for a while. It returns the longest time without a departure in a
// window with room, and the number of refusals.
func standStill(t *testing.T, limit testserver.Limit, resets bool, step time.Duration) (idle time.Duration, refused int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newCompany(t, testserver.XRateLimitEpoch, testserver.RetryAfterSeconds)
		f.vendor.Limits = []testserver.Limit{limit}
		for range 8 {
			f.join().WaitForReset = resets
		}
		var skew atomic.Int64
		time.AfterFunc(15*time.Second, func() {
			for _, store := range f.stores {
				distributed.Skew(store, &skew)
			}
			skew.Store(step.Microseconds())
		})
		f.callFor(orShort(36*time.Second, 18*time.Second), 4)
		idle, refused = longestIdle(f.vendor.Arrivals(), limit), f.refused()
	})
	return idle, refused
}

// The same over sockets and a real Redis, with clocks whose readings always differ. A machine that
// stops may stop a company, so one of three counts.
func TestNoProcessStopsInAWindowOverSockets(t *testing.T) {
	t.Parallel()
	limit, windows := testserver.FixedWindow(60, 3*time.Second), 3
	if long {
		limit, windows = testserver.FixedWindow(120, 6*time.Second), 10
	}
	idle, most := time.Hour, limit.Per*2/3
	for company := 0; company < 3 && idle > most; company++ {
		t.Run(strconv.Itoa(company), func(t *testing.T) {
			b := newBand(t, 8, &testserver.Vendor{Limits: []testserver.Limit{limit}, Styles: []testserver.Style{testserver.XRateLimitEpoch, testserver.RetryAfterSeconds}})
			time.Sleep(time.Duration(windows) * limit.Per)
			idle = longestIdle(b.vendor.Arrivals(), limit)
			t.Logf("no departure for %v in a window with room", idle)
		})
	}
	if idle > most {
		t.Errorf("three times no departure for %v in a window with room; want %v at most", idle, most)
	}
}

// callFor runs workers that call continuously at each process for a while.
func (c *company) callFor(d time.Duration, workers int) {
	ctx, cancel := context.WithCancel(c.t.Context())
	time.AfterFunc(d, cancel)
	var calling sync.WaitGroup
	for _, p := range c.all {
		for range workers {
			calling.Go(func() { callAgain(ctx, p, c.server.URL, "") })
		}
	}
	calling.Wait()
}

// longestIdle returns the longest time without a departure in a window with room.
func longestIdle(all testserver.Arrivals, limit testserver.Limit) (longest time.Duration) {
	const kept = 20 // most permits for single calls that find the end of the window
	last, window, used := time.Duration(0), int64(0), 0
	for i, a := range all.Granted() {
		if this := a.Wall.UnixNano() / int64(limit.Per); i == 0 || this != window {
			if used >= limit.Permits-kept {
				last = a.At - time.Duration(a.Wall.UnixNano()%int64(limit.Per))
			}
			window, used = this, 0
		}
		if used < limit.Permits-kept {
			longest = max(longest, a.At-last)
		}
		last, used = a.At, used+1
	}
	return longest
}
