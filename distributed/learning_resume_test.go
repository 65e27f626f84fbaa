package distributed_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// opensElsewhere are an operator's actions, and the limits of the lane that each opens.
var opensElsewhere = map[string]struct {
	do     func(*weir.Transport, string) error
	limits []throttle.Limit
}{
	"Resume":                  {do: (*weir.Transport).Resume},
	"Resume, with its limits": {do: (*weir.Transport).Resume, limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 10)}},
	"Forget":                  {do: (*weir.Transport).Forget},
	"Forget, with its limits": {do: (*weir.Transport).Forget, limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 10)}},
}

// The vendor closed a lane for ten minutes. A process that has sent nothing, such as an operator's
// tool, opens it, and a call waiting in another process departs. The order of goroutines decides
// whether the script applies the pace before the pause, so each case runs often.
func TestAFreshProcessOpensALane(t *testing.T) {
	for name, c := range opensElsewhere {
		t.Run(name, func(t *testing.T) {
			for again := range 40 {
				if again > 3 && testing.Short() {
					break
				}
				synctest.Test(t, func(t *testing.T) {
					server := redispipe.Start(t, time.Millisecond)
					took := openElsewhere(t, c.do, func(base http.RoundTripper) (*weir.Transport, *distributed.Store) {
						store := distributed.New(server.Client(t), "company")
						return shares(store, base, c.limits), store
					})
					if took > 100*time.Millisecond {
						t.Errorf("the waiting call departed after %v, want 100 ms at most", took)
					}
				})
			}
		})
	}
}

// The same over a real Redis.
func TestAFreshProcessOpensALaneOverSockets(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := opensElsewhere["Resume, with its limits"]
	took := openElsewhere(t, c.do, func(base http.RoundTripper) (*weir.Transport, *distributed.Store) {
		client := place{Addrs: []string{server.Addr()}}.client()
		t.Cleanup(func() { _ = client.Close() })
		store := distributed.New(client, "company")
		store.FirstDeadline, store.Deadline, store.MaxDeadline = patience, patience, patience // a busy machine loses no store
		return shares(store, base, c.limits), store
	})
	if took > 10*time.Second { // of a pause of ten minutes
		t.Errorf("the waiting call departed after %v, want 10 s at most", took)
	}
}

func shares(store *distributed.Store, base http.RoundTripper, limits []throttle.Limit) *weir.Transport {
	store.Logger = slog.New(slog.DiscardHandler)
	return &weir.Transport{Base: base, Store: store, Limits: limits, MaxPause: time.Hour, Logger: store.Logger}
}

// A closing vendor refuses its first call for ten minutes, and serves all others.
type closing struct{ calls atomic.Int64 }

func (c *closing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: req, ProtoMajor: 1, ProtoMinor: 1}
	if c.calls.Add(1) == 1 {
		resp.StatusCode = http.StatusTooManyRequests
		resp.Header.Set("Retry-After", "600")
	}
	return resp, nil
}

// openElsewhere starts a call that must wait ten minutes in one process, and opens the lane from a
// fresh process. It returns how long the call then takes to depart.
func openElsewhere(t *testing.T, open func(*weir.Transport, string) error, join func(http.RoundTripper) (*weir.Transport, *distributed.Store)) time.Duration {
	t.Helper()
	vendor := new(closing)
	waiting, store := join(vendor)
	defer store.Close()
	defer waiting.Close()
	ctx, cancel := context.WithCancel(t.Context()) // no deadline: a call with less time than the pause is rejected
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://vendor.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		resp, err := (&http.Client{Transport: waiting}).Do(req)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = errors.New(resp.Status)
		}
		ended <- err
	}()
	await(t, "the pause", func() bool { all := waiting.Snapshot(); return len(all) > 0 && all[0].Paused > time.Minute })
	time.Sleep(standstill / 2)
	tool, its := join(vendor)
	began := time.Now()
	if err := open(tool, waiting.Snapshot()[0].Key); err != nil {
		t.Error(err)
	}
	_, _ = tool.Close(), its.Close()
	defer time.AfterFunc(patience, cancel).Stop()
	if err := <-ended; err != nil {
		t.Errorf("the waiting call ended with %v", err)
	}
	return time.Since(began)
}
