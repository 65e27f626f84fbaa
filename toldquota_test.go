package weir_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
)

// learningFrom returns a transport that learns from what answer returns, which
// takes 5 ms.
func learningFrom(t *testing.T, answer func(*http.Request) (http.Header, int, error)) *http.Client {
	transport := &weir.Transport{Logger: slog.New(slog.DiscardHandler), Base: baseFunc(func(req *http.Request) (*http.Response, error) {
		time.Sleep(5 * time.Millisecond)
		header, status, err := answer(req)
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(""))}, nil
	})}
	t.Cleanup(func() { transport.Close() })
	return &http.Client{Transport: transport}
}

// told is what an answer tells of an hour's window.
func told(limit, remaining int, reset time.Duration) http.Header {
	return http.Header{
		"Ratelimit-Limit": {strconv.Itoa(limit)}, "Ratelimit-Remaining": {strconv.Itoa(max(0, remaining))},
		"Ratelimit-Reset": {strconv.Itoa(int(reset.Seconds()))},
	}
}

// call sends one POST and returns how long it took.
func call(client *http.Client, url string, within time.Duration) time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		panic(err)
	}
	began := time.Now()
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
	}
	return time.Since(began)
}

// Calls of which the vendor tells no count do not stop a lane whose last count
// was told: they fail on the way, answer without a field, or hang.
func TestUntoldCallsSpendNoToldQuota(t *testing.T) {
	broken := errors.New("broken")
	ways := map[string]func(req *http.Request) (http.Header, int, error){
		"fail":          func(*http.Request) (http.Header, int, error) { return nil, 0, broken },
		"answer 500":    func(*http.Request) (http.Header, int, error) { return http.Header{}, 500, nil },
		"tell nothing":  func(*http.Request) (http.Header, int, error) { return http.Header{}, 200, nil },
		"are cancelled": func(req *http.Request) (http.Header, int, error) { <-req.Context().Done(); return nil, 0, broken },
	}
	for name, way := range ways {
		for _, used := range []int{0, 5} {
			synctest.Test(t, func(t *testing.T) {
				began, used, tells := time.Now(), used, true
				client := learningFrom(t, func(req *http.Request) (http.Header, int, error) {
					if !tells {
						return way(req)
					}
					used++
					return told(10, 10-used, time.Until(began.Add(time.Hour))), 200, nil
				})
				for range 4 {
					call(client, "http://vendor.example/", time.Minute)
				}
				tells = false
				for i := range 30 {
					if took := call(client, "http://vendor.example/", 3*time.Second); name != "are cancelled" && took > time.Second {
						t.Fatalf("call %d of those that %s took %v", i, name, took)
					}
				}
				tells = true
				if took := call(client, "http://vendor.example/", time.Hour); took > 2*time.Second {
					t.Errorf("after calls that %s the next took %v", name, took)
				}
			})
		}
	}
}

// While a call that asks whether a window has begun hangs, another asks.
func TestHangingCallIsAskedAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, used, hangs := time.Now(), 5, false
		client := learningFrom(t, func(req *http.Request) (http.Header, int, error) {
			if hangs {
				hangs = false
				<-req.Context().Done()
				return nil, 0, req.Context().Err()
			}
			used++
			return told(10, 10-used, time.Until(began.Add(10*time.Second))), 200, nil
		})
		for range 5 {
			call(client, "http://vendor.example/", time.Minute)
		}
		used, hangs = 0, true
		var hanging sync.WaitGroup
		hanging.Go(func() { call(client, "http://vendor.example/", time.Hour) })
		defer hanging.Wait()
		time.Sleep(11 * time.Second)
		if took := call(client, "http://vendor.example/", time.Minute); took > 2*time.Second {
			t.Errorf("beside a call that hangs the next took %v", took)
		}
	})
}

// Two routes of a host tell counts of their own: what one spends the other has
// not spent.
func TestRoutesSpendTheirOwnToldQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		quotas := map[string]*struct {
			limit, used int
			reset       time.Duration
		}{"/search": {limit: 30, reset: time.Minute}, "/repos": {limit: 5000, reset: time.Hour}}
		client := learningFrom(t, func(req *http.Request) (http.Header, int, error) {
			q := quotas[req.URL.Path]
			q.used++
			return told(q.limit, q.limit-q.used, time.Until(began.Add(q.reset))), 200, nil
		})
		for i := range 20 {
			call(client, "http://vendor.example/search", time.Hour)
			if i%5 == 0 {
				call(client, "http://vendor.example/repos", time.Hour)
			}
		}
		for i := range 40 {
			if took := call(client, "http://vendor.example/repos", time.Hour); took > time.Second {
				t.Errorf("call %d to the route that has 4,900 left took %v", i, took)
			}
		}
	})
}
