package hostlocal_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// Transports that share a directory learn the limit of their vendor together: it refuses far fewer
// calls than it serves, and both learn the same rate. It takes five seconds, and longer on a busy
// machine, whose calls seldom reach the limit.
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
	dir, began := private(t), time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var transports []*weir.Transport
	for range 2 {
		store := &hostlocal.Store{Dir: dir}
		transport := &weir.Transport{Store: store, Limits: []throttle.Limit{throttle.TokenBucket(1000, time.Second, 100)}}
		transports = append(transports, transport)
		defer store.Close()
		defer transport.CloseIdleConnections()
		for range 4 {
			all.Go(func() {
				for ctx.Err() == nil {
					resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get(vendor.URL)
					if err == nil {
						_ = resp.Body.Close()
					}
				}
			})
		}
	}
	time.Sleep(5 * time.Second)
	rates := agreed(transports, 30*time.Second)
	cancel()
	all.Wait()
	took := time.Since(began)
	t.Logf("%d served, %d refused in %v, learned rates %v", served, refused, took, rates)
	if float64(served) < took.Seconds()*rate/8 || refused > served/4 {
		t.Errorf("in %v of %d/s %d calls were served and %d refused", took, rate, served, refused)
	}
	for _, transport := range transports {
		_ = transport.Shutdown(t.Context())
	}
	if rates[0] != rates[1] || rates[0] <= 0 || rates[0] > 2*rate {
		t.Errorf("learned rates %v, want twice the same, and no more than about %d", rates, rate)
	}
}

// A vendor's pause at one Transport also pauses the other, although the first is closed at once, as
// a command line would close it.
func TestPausesOutliveTheirTransport(t *testing.T) {
	var calls atomic.Int64
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 2 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer vendor.Close()
	dir := private(t)
	start := func() (get func() int, end func()) {
		store := &hostlocal.Store{Dir: dir}
		transport := &weir.Transport{Store: store, Limits: []throttle.Limit{throttle.TokenBucket(1000, time.Second, 100)}, Retry: backoff.None}
		get = func() int {
			resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get(vendor.URL)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp.StatusCode
		}
		return get, func() {
			transport.CloseIdleConnections()
			if err := errors.Join(transport.Close(), store.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	waiting, end := start()
	defer end()
	waiting()
	refused, gone := start()
	if code := refused(); code != http.StatusTooManyRequests {
		t.Fatalf("the second call has status %d", code)
	}
	began := time.Now()
	gone()
	code := waiting()
	t.Logf("status %d after %v", code, time.Since(began))
	if d := time.Since(began); code != http.StatusOK || d < 900*time.Millisecond || d > 5*time.Second {
		t.Errorf("the call of the other Transport has status %d after %v, want 200 after a second", code, d)
	}
}

// agreed returns what both transports have learned, once it is the same rate or after d. A message
// takes a moment to be applied by both, and the rate is zero while they search.
func agreed(transports []*weir.Transport, d time.Duration) (rates [2]float64) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for i, transport := range transports {
			for _, lane := range transport.Snapshot() {
				rates[i] = lane.Learned.Rate
			}
		}
		if rates[0] == rates[1] && rates[0] > 0 {
			break
		}
	}
	return rates
}

// A slow is a learner that is flushed while a call of it runs.
type slow struct {
	replicator store.Replicator
	calls, at  atomic.Int64 // how many were made, and how many run
	overlap    atomic.Bool
}

func (s *slow) called() {
	s.calls.Add(1)
	s.overlap.Store(s.at.Add(1) > 1 || s.overlap.Load())
	s.replicator.Flush()
	time.Sleep(time.Millisecond)
	s.at.Add(-1)
}

func (s *slow) Propose(store.FleetState) store.Entry        { s.called(); return store.Entry{} }
func (s *slow) Apply([]byte, int64, throttle.Instant)       {}
func (s *slow) Snapshot() []byte                            { return nil }
func (s *slow) Restore([]byte)                              {}
func (s *slow) Pacing(store.FleetState) (none store.Pacing) { return none }

// Calls of a learner never overlap, not even the first ones.
func TestLearnersAreCalledOneByOne(t *testing.T) {
	l := hostlocal.NewAt(private(t), "k")
	learner := &slow{replicator: l.(store.Replicator)}
	learner.replicator.Replicate(learner)
	for learner.calls.Load() < 10 {
		time.Sleep(time.Millisecond)
	}
	_ = l.(throttle.Remote).Close()
	if learner.overlap.Load() {
		t.Error("a learner is called while another call runs")
	}
}

// A taught is a learner that has one message to send, and applies those of others.
type taught struct {
	store.Learner
	unsent  string
	applied []string
}

func (l *taught) Propose(store.FleetState) (e store.Entry) {
	e.Data, l.unsent = []byte(l.unsent), ""
	return e
}

func (l *taught) Apply(message []byte, _ int64, _ throttle.Instant) {
	l.applied = append(l.applied, string(message))
}

func (l *taught) Pacing(store.FleetState) (none store.Pacing) { return none }

// Close sends what the learner has not sent. A process that starts later applies it.
func TestCloseSendsWhatTheLearnerHolds(t *testing.T) {
	dir := private(t)
	a, b := hostlocal.NewAt(dir, "k"), hostlocal.NewAt(dir, "k")
	learner := new(taught)
	a.(store.Replicator).Replicate(learner)
	learner.unsent = "the last message"
	if err := a.(throttle.Remote).Close(); err != nil {
		t.Error(err)
	}
	later := new(taught)
	b.(store.Replicator).Replicate(later)
	_ = b.(throttle.Remote).Close()
	if len(later.applied) != 1 || later.applied[0] != "the last message" {
		t.Errorf("a later process applies %q, want the last message", later.applied)
	}
}
