package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// The contract of http.RoundTripper over real sockets.

func TestTransportKeepsCallerRequest(t *testing.T) {
	r := harness.SocketRig(t,
		&testserver.Vendor{Faults: []testserver.Fault{{First: 1, Last: 1, Do: testserver.Answer, Status: 500}}},
		&weir.Transport{Retry: harness.After(0), Prepare: func(req *http.Request) error {
			req.Header.Set("Authorization", "signed")
			req.Header.Add("X-List", "more")
			req.URL.RawQuery = "signature=1"
			req.Host = "other.example"
			return nil
		}})
	req, _ := http.NewRequest(http.MethodPut, r.Server.URL+"/a?b=c", strings.NewReader("body"))
	req.Header["X-List"] = []string{"one"}
	before, header, u := *req, req.Header.Clone(), *req.URL
	getBody := reflect.ValueOf(req.GetBody).Pointer()

	r.Want("PUT", r.Do(req), 200)

	if got := len(r.Vendor.Arrivals()); got != 2 {
		t.Fatalf("arrivals = %d, want 2", got)
	}
	if got := reflect.ValueOf(req.GetBody).Pointer(); got != getBody {
		t.Error("GetBody was changed")
	}
	after := *req
	before.GetBody, after.GetBody = nil, nil
	if !reflect.DeepEqual(before, after) {
		t.Errorf("request after = %+v, want %+v", after, before)
	}
	if before.Body != after.Body || before.Context() != after.Context() {
		t.Error("Body or context was replaced")
	}
	if !reflect.DeepEqual(header, req.Header) || u != *req.URL {
		t.Errorf("header, URL after = %v, %v, want %v, %v", req.Header, req.URL, header, &u)
	}
}

// Many goroutines may send one request, and read it meanwhile.
func TestTransportSharesRequestBetweenGoroutines(t *testing.T) {
	r := harness.SocketRig(t, &testserver.Vendor{}, &weir.Transport{Prepare: func(req *http.Request) error {
		req.Header.Set("X-Signature", "s")
		req.URL.Path = "/signed"
		return nil
	}})
	req := r.Request(t.Context(), "shared")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _ = fmt.Sprint(req.Header, req.URL); req.Header.Get("X-Signature") != "" {
				t.Error("the caller's header was changed")
			}
			r.Want("GET", r.Do(req), 200)
		})
	}
	wg.Wait()
}

func TestTransportReturnsLastResponseWithItsBody(t *testing.T) {
	for _, status := range []int{429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			retry := harness.After(0)
			retry.MaxThrottled = 3
			r := harness.SocketRig(t,
				&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: status, Size: 60_000, Header: http.Header{"X-Why": {"because"}}}}},
				&weir.Transport{Retry: retry})
			got := r.Get(t.Context(), "a")
			r.Want("GET", got, status)
			if len(got.Body) != 60_000 || got.Header.Get("X-Why") != "because" {
				t.Errorf("last answer = %d bytes, X-Why %q, want 60000, because", len(got.Body), got.Header.Get("X-Why"))
			}
			if n := len(r.Vendor.Arrivals()); n != 4 {
				t.Errorf("arrivals = %d, want 4", n)
			}
		})
	}
}

func TestTransportNeverReturnsResponseAndError(t *testing.T) {
	closed := new(harness.CountedBody)
	failure := errors.New("base failed")
	tests := []struct {
		name string
		base harness.BaseFunc
		want error
	}{
		{"neither", func(*http.Request) (*http.Response, error) { return nil, nil }, nil},
		{"both", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: closed}, failure
		}, failure},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			transport := &weir.Transport{Base: tt.base, Retry: harness.After(0)}
			req, _ := http.NewRequest(http.MethodPost, "http://vendor.test/", nil)
			resp, err := transport.RoundTrip(req)
			var ours *weir.Error
			if resp != nil || !errors.As(err, &ours) || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("RoundTrip = %v, %v, want nil and *weir.Error of %v", resp, err, tt.want)
			}
		})
	}
	if got := closed.Closes.Load(); got != 1 {
		t.Errorf("closes of the response that came with an error = %d, want 1", got)
	}
}

// A base may leave a bodyless response's Body nil; http.Client does not.
func TestTransportResponseAlwaysHasBody(t *testing.T) {
	transport := &weir.Transport{Base: harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 204, Request: req}, nil
	})}
	req, _ := http.NewRequest(http.MethodGet, "http://vendor.test/", nil)
	resp, err := transport.RoundTrip(req)
	if err != nil || resp.Body == nil {
		t.Fatalf("RoundTrip = %+v, %v, want a body", resp, err)
	}
	resp.Body.Close()
}

func TestTransportRaisesPanicOfBaseAgain(t *testing.T) {
	r := harness.SocketRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Hour)})
	base := r.Transport.Base
	r.Transport.Base = harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
		if req.Header.Get("X-Panic") != "" {
			panic("base broke")
		}
		return base.RoundTrip(req)
	})
	req := r.Request(t.Context(), "a")
	req.Header.Set("X-Panic", "now")
	func() {
		defer func() {
			if got := recover(); got != "base broke" {
				t.Errorf("recover() = %v, want base broke", got)
			}
		}()
		r.Transport.RoundTrip(req)
	}()
	for _, lane := range r.Transport.Snapshot() {
		if lane.Requests != 0 {
			t.Errorf("requests in lane %q after a panic = %d, want 0", lane.Key, lane.Requests)
		}
	}
}

func TestTransportRefusesRequestWithoutURL(t *testing.T) {
	transport := new(weir.Transport)
	defer transport.Close()
	_, err := transport.RoundTrip(&http.Request{Method: http.MethodGet, Header: http.Header{}})
	var ours *weir.Error
	if !errors.As(err, &ours) || ours.Attempts != 0 {
		t.Errorf("RoundTrip without URL = %v, want *weir.Error", err)
	}
}

func TestTransportKeepsCallersClientTrace(t *testing.T) {
	r := harness.SocketRig(t, &testserver.Vendor{}, new(weir.Transport))
	var got, wrote int
	trace := &httptrace.ClientTrace{
		GetConn:      func(string) { got++ },
		WroteHeaders: func() { wrote++ },
	}
	r.Want("GET", r.Get(httptrace.WithClientTrace(t.Context(), trace), "a"), 200)
	if got != 1 || wrote != 1 {
		t.Errorf("calls of GetConn, WroteHeaders = %d, %d, want 1, 1", got, wrote)
	}
}

type closingBase struct {
	http.RoundTripper
	closed int
}

func (b *closingBase) CloseIdleConnections() { b.closed++ }

func TestTransportCloseIdleConnectionsReachesBase(t *testing.T) {
	base := &closingBase{RoundTripper: harness.Stub{}}
	client := http.Client{Transport: &weir.Transport{Base: &weir.Transport{Base: base}}}
	client.CloseIdleConnections()
	if base.closed != 1 {
		t.Errorf("calls of CloseIdleConnections = %d, want 1", base.closed)
	}
	(&weir.Transport{Base: harness.Stub{}}).CloseIdleConnections() // has none: no effect
}

func TestTransportContextEndsWithResponseBody(t *testing.T) {
	var sent context.Context
	r := harness.SocketRig(t, &testserver.Vendor{Handler: testserver.Quirks()}, new(weir.Transport))
	base := r.Transport.Base
	r.Transport.Base = harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
		sent = req.Context()
		return base.RoundTrip(req)
	})
	req := r.Request(t.Context(), "a")
	req.URL.Path, req.URL.RawQuery = "/body", "size=100000"
	resp, err := r.Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if sent.Err() != nil {
		t.Errorf("context before the body is read: %v, want nil", sent.Err())
	}
	if n, err := io.Copy(io.Discard, resp.Body); n != 100_000 || err != nil {
		t.Errorf("body = %d bytes, %v, want 100000", n, err)
	}
	if sent.Err() == nil {
		t.Error("context after the body was read is alive, want it ended")
	}
	resp.Body.Close()

	if resp, err = r.Transport.RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if sent.Err() == nil {
		t.Error("context after the body was closed is alive, want it ended")
	}
}

// A transport may wrap another one.
func TestTransportInsideTransport(t *testing.T) {
	inner := &weir.Transport{Limits: harness.Every(time.Hour)}
	r := harness.SocketRig(t, &testserver.Vendor{}, inner)
	outer := &weir.Transport{Base: inner, Limits: harness.Every(time.Hour)}
	defer outer.Close()
	client := &http.Client{Transport: outer, Timeout: time.Minute}
	resp, err := client.Get(r.Server.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	_, err = client.Get(r.Server.URL)
	var u *url.Error
	if !errors.As(err, &u) || !u.Timeout() {
		t.Errorf("second GET = %v, want a timeout", err)
	}
}

// A Transport may take the place of the default one, and then sends through that.
func TestTransportMayBeTheDefault(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	transport := new(weir.Transport)
	defer transport.Close()
	http.DefaultTransport = transport
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if n := len(transport.Snapshot()); n != 1 {
		t.Errorf("it has %d lanes, want 1", n)
	}
	transport.CloseIdleConnections()
}

// net/http asks for a connection under the lock of its HTTP/2 connections, which closing idle ones needs, too.
func TestDeadConnectionsAreClosedUnderALock(t *testing.T) {
	base := &lockedBase{closed: make(chan struct{})}
	transport := &weir.Transport{Base: base}
	defer transport.Close()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://vendor.example/", nil)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-base.closed
}

// A lockedBase finds eight connections dead before it sends a request, and holds a lock meanwhile.
type lockedBase struct {
	mu     sync.Mutex
	closed chan struct{}
}

func (b *lockedBase) RoundTrip(req *http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	trace := httptrace.ContextClientTrace(req.Context())
	for range 9 {
		trace.GetConn("vendor.example:80")
		trace.WroteHeaders()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

func (b *lockedBase) CloseIdleConnections() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.closed)
}

// Prepare may send requests of its own with the request's context. They are no resends of the call.
func TestWhatPrepareSendsIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *harness.Rig
		r = harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Second), Prepare: func(req *http.Request) error {
			for range 2 {
				resp, err := r.Server.Transport().RoundTrip(r.Request(req.Context(), "token"))
				if err != nil {
					return err
				}
				resp.Body.Close()
			}
			return nil
		}})
		for range 3 {
			r.Want("GET", r.Get(t.Context(), "call"), http.StatusOK)
		}
		if took := r.Now(); took != 2*time.Second {
			t.Errorf("3 calls, for each of which two tokens were fetched, took %v, want 2s", took)
		}
	})
}
