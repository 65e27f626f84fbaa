package lanes_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// chaosKeys are lanes whose callers overlap.
var chaosKeys = []string{"a", "b", "c", "search", "write", "account"}

// anyKeys returns one to four keys in any order, some of them twice.
func anyKeys() string {
	keys := slices.Clone(chaosKeys)
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:1+rand.IntN(4)]
	return strings.Join(append(keys, keys[rand.IntN(len(keys))]), " ")
}

// stir starts calls with any keys until the context ends. Many are cancelled at random, and the
// others wait without a deadline.
func stir(ctx context.Context, r *harness.Rig, served *atomic.Int64) {
	for ctx.Err() == nil {
		one, cancel := r.Context(), context.CancelFunc(func() {})
		if rand.IntN(3) == 0 {
			one, cancel = context.WithTimeout(one, time.Duration(rand.IntN(100_000))*time.Microsecond)
		}
		one = weir.WithPriority(one, []weir.Priority{weir.PriorityLow, weir.PriorityNormal, weir.PriorityHigh}[rand.IntN(3)])
		one = weir.WithTenant(one, []string{"", "x", "y"}[rand.IntN(3)], 1+rand.IntN(2))
		if r.Do(with(r, "stir", anyKeys()).WithContext(one)).Status == http.StatusOK {
			served.Add(1)
		}
		cancel()
	}
}

// meddle changes limits and pauses lanes until the context ends.
func meddle(ctx context.Context, r *harness.Rig, changes *atomic.Int64) {
	for ctx.Err() == nil {
		switch key := chaosKeys[rand.IntN(len(chaosKeys))]; rand.IntN(4) {
		case 0:
			_ = r.Transport.Pause(key, time.Duration(rand.IntN(30)+1)*time.Millisecond)
		case 1:
			_ = r.Transport.Pause(key, time.Hour)
			_ = r.Transport.Resume(key)
		case 2:
			changes.Add(1)
			_ = r.Transport.Reload()
		case 3:
			_, _ = r.Transport.Forecast(with(r, "", anyKeys()))
			r.Transport.Snapshot()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Nothing is lost or stuck, whatever happens to calls in several lanes. Afterwards no call waits or
// is in flight, and new calls depart.
func TestNothingIsStuckAfterChaos(t *testing.T) {
	var changes, served atomic.Int64
	vendor := &testserver.Vendor{Service: time.Millisecond, Faults: []testserver.Fault{
		{First: 40, Every: 41, Do: testserver.Answer, Header: http.Header{"Retry-After": {"0"}, "Ratelimit": {`"search";r=0;t=0`}}},
		{First: 50, Every: 53, Do: testserver.Answer, Status: 503},
		{First: 60, Every: 67, Do: testserver.ResetEarly},
	}}
	r := harness.SocketRig(t, vendor, &weir.Transport{
		Keys: fromHeader, InFlight: weir.InFlight{Max: 6}, Line: weir.Line{MaxWaiting: 60, LowPriorityShare: 0.2},
		Cost: func(req *http.Request, _ throttle.Limit) int { return 1 + len(req.Header.Get("Keys"))%2 },
		LimitsFor: func(key string) []throttle.Limit {
			rate := 100 + 40*len(key) + 10*int(changes.Load()%5)
			limits := []throttle.Limit{throttle.TokenBucket(rate, time.Second, 5)}
			if key == "search" || changes.Load()%2 == 1 {
				limits = append(limits, throttle.SlidingWindow(rate, time.Second))
			}
			return limits
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() { stir(ctx, r, &served) })
	}
	meddle(ctx, r, &changes)
	for _, key := range chaosKeys {
		if err := r.Transport.Resume(key); err != nil {
			t.Error(err)
		}
	}
	ended := time.Now()
	wg.Wait()
	if d := time.Since(ended); d > 10*time.Second {
		t.Errorf("the last call ended %v after the chaos, want 10 s at most", d)
	}
	t.Logf("%d served, %d changes of limits", served.Load(), changes.Load())
	if served.Load() < 20 {
		t.Errorf("%d calls were served in 3 s, want 20", served.Load())
	}
	nobodyLeft(t, r.Transport)
	for _, keys := range []string{"a account", "account a", "search write b account", "c"} {
		last, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		r.Want("call of "+keys, r.Do(with(r, "last", keys).WithContext(last)), 200)
		cancel()
	}
}
