package harness

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// ScopedBy returns a dialect whose refusals have a scope.
func ScopedBy(scope headers.Scope) *headers.Dialect { return &headers.Dialect{Scope: scope} }

// Ask sends requests in order, each from its own goroutine, and returns when all are answered.
func (r *Rig) Ask(reqs ...*http.Request) []time.Duration {
	var wg sync.WaitGroup
	at := make([]time.Duration, len(reqs))
	for i, req := range reqs {
		wg.Go(func() {
			got := r.Do(req)
			r.Want(req.Method+" "+req.URL.Path, got, 200)
			at[i] = got.At
		})
		synctest.Wait()
	}
	wg.Wait()
	return at
}

// Path returns a GET of a path.
func (r *Rig) Path(path string) *http.Request {
	req := r.Request(r.Context(), path)
	req.URL.Path = path
	return req
}

// As returns a GET with a credential.
func (r *Rig) As(credential string) *http.Request {
	req := r.Request(r.Context(), credential)
	req.Header.Set("Authorization", credential)
	return req
}

// GetAs requests a path with a credential.
func (r *Rig) GetAs(path, credential string) Answer {
	req := r.As(credential)
	req.URL.Path = path
	return r.Do(req)
}

// Counted returns the counts of the only lane's shadow.
func (r *Rig) Counted() []weir.ShadowCount { return r.Transport.Snapshot()[0].Shadow }

// WantCounted fails the test unless the shadow has these counts.
func (r *Rig) WantCounted(want ...weir.ShadowCount) {
	r.Helper()
	if got := r.Counted(); !reflect.DeepEqual(got, want) {
		r.Errorf("Shadow = %+v, want %+v", got, want)
	}
}

// At sends a GET at each of the instants, which must ascend, and waits for the
// answers.
func (r *Rig) At(instants ...time.Duration) {
	var done []<-chan Answer
	for _, at := range instants {
		time.Sleep(at - r.Now())
		done = append(done, r.Start("a"))
	}
	for _, d := range done {
		r.Want("GET", <-d, 200)
	}
}

// Named returns a limit of another unit.
func Named(l throttle.Limit, unit string) throttle.Limit {
	l.Unit = unit
	return l
}

// To sends a GET to a host, which is a lane.
func (r *Rig) To(host string) Answer {
	req := r.Request(r.Context(), host)
	req.URL.Host = host
	return r.Do(req)
}

// Keys returns the keys of the transport's lanes.
func (r *Rig) Keys() []string {
	var keys []string
	for _, lane := range r.Transport.Snapshot() {
		keys = append(keys, lane.Key)
	}
	return keys
}

// MustParse parses a URL.
func MustParse(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

// Free returns a limiter that grants everything, and cannot be tuned.
func Free() throttle.Limiter {
	return throttle.LimiterFunc(func(now throttle.Instant, _ throttle.Request) (throttle.Instant, error) { return now, nil })
}

// GetOf returns a GET of a host.
func GetOf(host string) *http.Request {
	req, err := http.NewRequest(http.MethodGet, "http://"+host+"/", nil)
	if err != nil {
		panic(err)
	}
	return req
}

// LearningFrom returns a transport that learns from the result of answer, which takes 5 ms.
func LearningFrom(t *testing.T, answer func(*http.Request) (http.Header, int, error)) *http.Client {
	transport := &weir.Transport{Logger: slog.New(slog.DiscardHandler), Base: BaseFunc(func(req *http.Request) (*http.Response, error) {
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

// Reported returns the header of an answer that reports what is left of a window.
func Reported(limit, remaining int, reset time.Duration) http.Header {
	return http.Header{
		"Ratelimit-Limit": {strconv.Itoa(limit)}, "Ratelimit-Remaining": {strconv.Itoa(max(0, remaining))},
		"Ratelimit-Reset": {strconv.Itoa(int(reset.Seconds()))},
	}
}

// Call sends one POST and returns how long it took.
func Call(client *http.Client, url string, within time.Duration) time.Duration {
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

// Answered answers only the request with that number.
func Answered(number int, f testserver.Fault) testserver.Fault {
	f.First, f.Last, f.Do = number, number, testserver.Answer
	return f
}

// Start sends a GET in the background and returns a channel for its answer.
func (r *Rig) Start(id string) <-chan Answer {
	done := make(chan Answer, 1)
	go func() { done <- r.Get(r.Context(), id) }()
	synctest.Wait()
	return done
}
