package testserver_test

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// A way is a history of trips in a line: each step is a departure, or the
// landing of an earlier one.
type way struct {
	lands     int // zero: a departure; otherwise the number of the one that lands
	status    int
	remaining int
}

// trips returns the trips of a history whose steps are ten milliseconds apart.
func trips(ways ...way) []testserver.Trip {
	var all []testserver.Trip
	at := time.Unix(0, 0)
	for i, w := range ways {
		at = at.Add(10 * time.Millisecond)
		if w.lands == 0 {
			all = append(all, testserver.Trip{Departed: i + 1, Left: at})
			continue
		}
		t := &all[w.lands-1]
		t.Landed, t.Back, t.Status = i+1, at, w.status
		t.Remaining, t.Reported = w.remaining, w.remaining >= 0
	}
	return all
}

func TestCeilingBoundsDepartures(t *testing.T) {
	leave := way{}
	back := func(n, remaining int) way { return way{n, http.StatusOK, remaining} }
	refused := func(n, remaining int) way { return way{n, http.StatusTooManyRequests, remaining} }
	tests := []struct {
		name    string
		ceiling testserver.Ceiling
		ways    []way
		want    int
	}{
		{"nothing reported", testserver.Ceiling{}, []way{leave, leave, back(1, -1), leave, leave}, 0},
		{"all that is left", testserver.Ceiling{}, []way{leave, back(1, 2), leave, leave}, 0},
		{"one more", testserver.Ceiling{}, []way{leave, back(1, 2), leave, leave, leave}, 1},
		{"those in flight count", testserver.Ceiling{}, []way{leave, leave, leave, back(1, 2), leave}, 1},
		{"a refusal does not", testserver.Ceiling{}, []way{leave, leave, back(1, 0), refused(2, 0), leave}, 1},
		{"a refused reading grants nothing", testserver.Ceiling{}, []way{leave, refused(1, 0), leave}, 1},
		{"a refused reading that grants one", testserver.Ceiling{}, []way{leave, refused(1, 1), leave}, 0},
		{"the highest holds", testserver.Ceiling{}, []way{leave, back(1, 3), leave, back(2, 0), leave, leave}, 0},
		{"the newest holds", testserver.Ceiling{Newest: true}, []way{leave, back(1, 3), leave, back(2, 0), leave, leave}, 2},
		{"the newest by departure", testserver.Ceiling{Newest: true}, []way{leave, leave, back(2, 5), back(1, 0), leave, leave}, 0},
		{"it rises", testserver.Ceiling{Limit: testserver.TokenBucket(100, time.Second, 5)}, []way{leave, back(1, 0), leave, leave}, 0},
		{"up to the burst", testserver.Ceiling{Limit: testserver.TokenBucket(1000, time.Second, 2)}, []way{leave, back(1, 0), leave, leave, leave}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.ceiling.Over(trips(tt.ways...)); len(got) != tt.want {
				t.Errorf("over the ceiling: %+v, want %d", got, tt.want)
			}
		})
	}
}

// drain makes workers send calls through a round tripper, and returns how many were refused.
func drain(t *testing.T, base http.RoundTripper, url string, calls, workers int) int {
	var refused, sent atomic.Int64
	var all sync.WaitGroup
	client := &http.Client{Transport: base}
	for range workers {
		all.Go(func() {
			for sent.Add(1) <= int64(calls) {
				resp, err := client.Get(url)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode == http.StatusTooManyRequests {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(refused.Load())
}

// A keeper sends calls up to the ceiling that answers report. At the ceiling it waits until all
// have landed and one more permit has accrued, and sends one.
type keeper struct {
	base     http.RoundTripper
	interval time.Duration // in which the vendor gains a permit

	mu               sync.Mutex
	changed          sync.Cond
	departed, landed int
	ceiling          int
}

func (k *keeper) RoundTrip(req *http.Request) (*http.Response, error) {
	k.mu.Lock()
	for k.departed >= k.ceiling {
		if k.departed == k.landed {
			<-time.After(2 * k.interval)
			k.ceiling = k.departed + 1
			break
		}
		k.changed.Wait()
	}
	k.departed++
	before := k.landed
	k.mu.Unlock()
	resp, err := k.base.RoundTrip(req)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.landed++
	if err == nil {
		left, _ := testserver.Remaining(resp.Header)
		k.ceiling = max(k.ceiling, left+before+1)
	}
	k.changed.Broadcast()
	return resp, err
}

// A client that stays below the ceiling is never refused. One that ignores it is refused, and
// departs above it.
func TestCeilingOverRealSockets(t *testing.T) {
	limit := testserver.TokenBucket(200, time.Second, 20)
	run := func(keeps bool) (refused, over int) {
		vendor := &testserver.Vendor{
			Limits: []testserver.Limit{limit}, Service: 2 * time.Millisecond, Spread: 4 * time.Millisecond,
			Styles: []testserver.Style{testserver.XRateLimitEpoch},
		}
		server := testserver.Run(t, testserver.Listen, vendor)
		tap := &testserver.Tap{Base: server.Transport()}
		var client http.RoundTripper = tap
		if keeps {
			k := &keeper{base: tap, interval: 5 * time.Millisecond}
			k.changed.L = &k.mu
			client = k
		}
		refused = drain(t, client, server.URL, 200, 16)
		return refused, len(testserver.Ceiling{Limit: limit}.Over(tap.Trips()))
	}
	if refused, over := run(true); refused != 0 || over != 0 {
		t.Errorf("below the ceiling: %d refused and %d over it, want none", refused, over)
	}
	if refused, over := run(false); refused == 0 || over == 0 {
		t.Errorf("without looking: %d refused and %d over the ceiling, want some", refused, over)
	}
}
