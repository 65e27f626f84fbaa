package hostlocal_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/throttle"
)

// Transports that share a directory find the limit of their vendor together: it refuses far
// fewer calls than it serves, and both have learned a rate.
func TestTransportsLearnTogether(t *testing.T) {
	const rate = 50
	var mu sync.Mutex
	var served, refused int
	tokens, last := 5.0, time.Now()
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		tokens = min(tokens+now.Sub(last).Seconds()*rate, 5)
		if last = now; tokens < 1 {
			refused++
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		tokens--
		served++
	}))
	defer vendor.Close()
	dir := private(t)
	var all sync.WaitGroup
	var transports []*weir.Transport
	for range 2 {
		store := &hostlocal.Store{Dir: dir}
		transport := &weir.Transport{Store: store, Limits: []throttle.Limit{throttle.TokenBucket(1000, time.Second, 100)}}
		transports = append(transports, transport)
		defer store.Close()
		defer transport.CloseIdleConnections()
		end := time.Now().Add(5 * time.Second)
		for range 4 {
			all.Go(func() {
				for time.Now().Before(end) {
					resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get(vendor.URL)
					if err == nil {
						_ = resp.Body.Close()
					}
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d served, %d refused", served, refused)
	if served < 5*rate/4 || refused > served/4 {
		t.Errorf("in 5 s of %d/s %d calls were served and %d refused", rate, served, refused)
	}
	var rates []float64
	for _, transport := range transports {
		for _, lane := range transport.Snapshot() {
			rates = append(rates, lane.Learned.Rate)
		}
		_ = transport.Shutdown(t.Context())
	}
	if len(rates) != 2 || rates[0] != rates[1] || rates[0] > 2*rate { // zero while they search
		t.Errorf("learned rates %v, want twice the same, and no more than about %d", rates, rate)
	}
}
