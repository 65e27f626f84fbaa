package distributed_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// crossing returns one to three keys out of 300 customers, two routes and an account.
func crossing() string {
	keys := []string{"customer" + strconv.Itoa(rand.IntN(300)), "route" + strconv.Itoa(rand.IntN(2)), "account"}
	return strings.Join(keys[rand.IntN(3):], " ")
}

// cross makes one call with the keys, at a random priority.
func cross(ctx context.Context, transport *weir.Transport, keys string) error {
	ctx = shaping.WithPriority(ctx, []shaping.Priority{shaping.PriorityLow, shaping.PriorityNormal, shaping.PriorityHigh}[rand.IntN(3)])
	return callWith(ctx, transport, keys)
}

// callWith makes one call with the keys.
func callWith(ctx context.Context, transport *weir.Transport, keys string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, testserver.PipeURL, nil)
	if err != nil {
		return err
	}
	req.Header.Set(testserver.DefaultIDHeader, keys)
	resp, err := transport.RoundTrip(req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

// Calls with one to three keys are made while Redis is killed and restarted and limits change.
// Afterwards no call is stuck waiting or in flight, and calls with all keys are sent. It bounds the time between
// calls, so no other test of the package runs beside it.
func TestNothingIsStuckWithKeysAndWithoutRedis(t *testing.T) {
	var slower atomic.Bool
	f := openCustomers(t, 2, planned, strings.Fields)
	for _, transport := range f.replicas {
		transport.InFlight.Max = 8
		transport.LimitsFor = func(key string) []throttle.Limit {
			rate := map[byte]int{'a': 300, 'r': 200, 'c': 20}[key[0]]
			if slower.Load() {
				return []throttle.Limit{throttle.GCRA(rate/2, time.Second, 4)}
			}
			return []throttle.Limit{throttle.TokenBucket(rate, time.Second, 10), throttle.SlidingWindow(10*rate, 10*time.Second)}
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	callers := orShort(120, 60)
	ended := make(chan bool, callers)
	var served atomic.Int64
	for i := range callers {
		go func() {
			defer func() { ended <- true }()
			for ctx.Err() == nil {
				one, cancel := t.Context(), context.CancelFunc(func() {})
				if rand.IntN(3) == 0 {
					one, cancel = context.WithTimeout(one, time.Duration(1+rand.IntN(100_000))*time.Microsecond)
				}
				if cross(one, f.replicas[i%2], crossing()) == nil {
					served.Add(1)
				}
				cancel()
			}
		}()
	}
	for i := range 6 {
		time.Sleep(300 * time.Millisecond)
		if slower.Store(i%2 == 0); i < 4 {
			for _, transport := range f.replicas {
				_ = transport.Reload()
			}
		}
		if i == 1 {
			f.server.Kill()
		}
		if i == 3 {
			f.server.Restart()
		}
	}
	before := served.Load()
	time.Sleep(2 * time.Second)
	if n := served.Load() - before; n < 10 { // 34 under the race detector on a busy machine, otherwise about 300
		t.Errorf("%d calls in the 2 s after Redis came back, want 10", n)
	}
	stop()
	began := time.Now()
	for left := callers; left > 0; left-- {
		select {
		case <-ended:
		case <-time.After(5 * time.Second): // all of them take longer on a busy machine
			t.Fatalf("%d of %d callers wait after the faults, and none went in the last 5 s", left, callers)
		}
	}
	t.Logf("%d served, the last ended after %v", served.Load(), time.Since(began))
	for i, transport := range f.replicas {
		for _, s := range transport.Snapshot() {
			if s.Waiting != 0 || s.InFlight != 0 || s.Requests != 0 {
				t.Errorf("replica %d, lane %q: %d waiting, %d in flight of %d requests, want none", i, s.Key, s.Waiting, s.InFlight, s.Requests)
			}
		}
		one, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := cross(one, transport, "customer1 route1 account"); err != nil {
			t.Errorf("replica %d: a call with all keys afterwards: %v", i, err)
		}
		cancel()
	}
}
