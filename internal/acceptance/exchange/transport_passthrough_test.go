package exchange_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// Everything except refusals and failures passes through unchanged.

func quirky(t *testing.T) *harness.Rig {
	t.Helper()
	return harness.SocketRig(t, &testserver.Vendor{Handler: testserver.Quirks()}, new(weir.Transport))
}

func TestSwitchedProtocolEchoesBothWays(t *testing.T) {
	r := quirky(t)
	resp, err := r.Client.Do(r.Upgrade())
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || resp.StatusCode != 101 {
		t.Fatalf("answer = %d, body %T, want 101 and an io.ReadWriteCloser", resp.StatusCode, resp.Body)
	}
	defer conn.Close()
	lines := bufio.NewReader(conn)
	for i := range 3 {
		fmt.Fprintf(conn, "line %d\n", i)
		if line, err := lines.ReadString('\n'); line != fmt.Sprintf("line %d\n", i) {
			t.Errorf("echo %d = %q, %v", i, line, err)
		}
	}
}

func TestConnectTunnels(t *testing.T) {
	r := quirky(t)
	body, w := io.Pipe()
	req, _ := http.NewRequest(http.MethodConnect, r.Server.URL, body)
	req.URL.Opaque = "far.example:443"
	resp, err := r.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for range 2 {
		go fmt.Fprintln(w, "hello")
		if line, err := lines.ReadString('\n'); line != "hello\n" {
			t.Errorf("echo = %q, %v", line, err)
		}
	}
	w.Close()
}

// Each event arrives when it is sent.
func TestEventStreamIsNotBuffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Handler: testserver.Quirks()}, &weir.Transport{Limits: harness.Every(time.Second)})
		resp, err := r.Client.Get(r.Server.URL + "/events?n=5&every=10s")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var at []time.Duration
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data:") {
				at = append(at, r.Now())
			}
		}
		harness.WantEqual(t, "events", at, harness.Spaced(0, 10*time.Second, 5))
	})
}

func TestTrailersArrive(t *testing.T) {
	for name, open := range harness.Protocols {
		for what, transport := range map[string]*weir.Transport{"": {}, ", bounded in flight": {InFlight: weir.InFlight{Max: 1}}} {
			t.Run(name+what, func(t *testing.T) {
				r := harness.NewRig(t, open, &testserver.Vendor{Handler: testserver.Quirks()}, transport)
				resp, err := r.Client.Get(r.Server.URL + "/trailers")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if body, err := io.ReadAll(resp.Body); string(body) != "body\n" || err != nil {
					t.Errorf("body = %q, %v", body, err)
				}
				if resp.Proto != name || resp.Trailer.Get("X-Sum") != "5" || resp.Trailer.Get("X-Late") != "yes" {
					t.Errorf("%s trailers = %v, want X-Sum 5, X-Late yes by %s", resp.Proto, resp.Trailer, name)
				}
			})
		}
	}
}

func TestExpectContinuePasses(t *testing.T) {
	for path, want := range map[string]int{"/echo": 200, "/reject": 417} {
		t.Run(path, func(t *testing.T) {
			r := quirky(t)
			r.Transport.Base.(*http.Transport).ExpectContinueTimeout = time.Minute
			body := harness.NewCountedBody("hello")
			req := r.Quirk("POST", path, "")
			req.Body, req.GetBody, req.ContentLength = body, nil, 5
			req.Header.Set("Expect", "100-continue")
			continued := false
			trace := &httptrace.ClientTrace{Got100Continue: func() { continued = true }}
			got := r.Do(req.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
			r.Want("POST "+path, got, want)
			if want == 200 && (got.Body != "hello" || !continued) {
				t.Errorf("echo = %q, continued %v, want hello, true", got.Body, continued)
			}
			<-body.Closed
			r.Server.Close()
			if n := body.Closes.Load(); n != 1 {
				t.Errorf("closes of the body = %d, want 1", n)
			}
		})
	}
}

func TestGzipPasses(t *testing.T) {
	text := strings.Repeat("compressed text\n", 64)
	r := quirky(t)
	got := r.Do(r.Quirk("GET", "/gzip", ""))
	if got.Body != text || got.Header.Get("Content-Encoding") != "" {
		t.Errorf("transparent gzip = %d bytes, Content-Encoding %q, want %d, none", len(got.Body), got.Header.Get("Content-Encoding"), len(text))
	}
	req := r.Quirk("GET", "/gzip", "")
	req.Header.Set("Accept-Encoding", "gzip")
	got = r.Do(req)
	zip, err := gzip.NewReader(strings.NewReader(got.Body))
	if err != nil {
		t.Fatalf("explicit gzip = %q: %v", got.Body, err)
	}
	if plain, err := io.ReadAll(zip); string(plain) != text || err != nil || got.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("explicit gzip = %d bytes, %v, want %d compressed ones", len(plain), err, len(text))
	}
}

func TestHeadPasses(t *testing.T) {
	r := quirky(t)
	resp, err := r.Client.Head(r.Server.URL + "/body?size=12345")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); len(body) != 0 || err != nil || resp.ContentLength != 12345 {
		t.Errorf("HEAD = %d bytes, %v, length %d, want none, 12345", len(body), err, resp.ContentLength)
	}
}

func TestInterimAnswersPass(t *testing.T) {
	r := quirky(t)
	interim := 0
	trace := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { interim++; return nil }}
	r.Want("GET", r.Do(r.Quirk("GET", "/interim?n=1000", "").WithContext(httptrace.WithClientTrace(t.Context(), trace))), 200)
	if interim != 1000 {
		t.Errorf("interim answers = %d, want 1000", interim)
	}
	if got := r.Transport.Snapshot()[0]; got.Paused != 0 || got.Learned != (weir.Learned{}) {
		t.Errorf("lane = %+v, want untouched", got)
	}
}

func TestOddHeadersPass(t *testing.T) {
	r := quirky(t)
	query := url.Values{"line": {"X-Double: one", "X-Double: two", "X-Folded: one\r\n two", "Set-Cookie: a=1", "Set-Cookie: b=2"}}
	got := r.Do(r.Quirk("GET", "/lines?"+query.Encode(), ""))
	r.Want("GET", got, 200)
	if double, cookies := got.Header.Values("X-Double"), got.Header.Values("Set-Cookie"); !slices.Equal(double, []string{"one", "two"}) || len(cookies) != 2 || got.Header.Get("X-Folded") != "one two" {
		t.Errorf("header = %v, want it unchanged", got.Header)
	}
	got = r.Do(r.Quirk("GET", "/field?size=500000", ""))
	if n := len(got.Header.Get("X-Field")); n != 500_000 {
		t.Errorf("large field = %d bytes, want 500000", n)
	}
}

// The longest of contradictory waits is used.
func TestDuplicateRetryAfterTakesTheLongest(t *testing.T) {
	r := harness.SocketRig(t, &testserver.Vendor{Handler: testserver.Quirks()}, new(weir.Transport))
	query := url.Values{"status": {"429"}, "line": {"Retry-After: 200", "Retry-After: 900"}}
	r.Want("GET", r.Do(r.Quirk("GET", "/lines?"+query.Encode(), "")), 429)
	if got := r.Transport.Snapshot()[0].Paused; got < 890*time.Second || got > 900*time.Second {
		t.Errorf("paused for %v, want 15m", got)
	}
}

// An answer whose body breaks off is the caller's: it is not retried.
func TestBodyThatBreaksOffIsReturned(t *testing.T) {
	r := harness.SocketRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.ResetMidBody, Size: 100_000}}}, &weir.Transport{Retry: harness.After(0)})
	got := r.Get(t.Context(), "a")
	if got.Status != 200 || got.Err == nil || len(r.Vendor.Arrivals()) != 1 {
		t.Errorf("GET = %d, %v after %d attempts, want 200 with a broken body after 1", got.Status, got.Err, len(r.Vendor.Arrivals()))
	}
}

func TestHTTP2Passes(t *testing.T) {
	r := harness.NewRig(t, testserver.ListenTLS, &testserver.Vendor{
		Handler: testserver.Quirks(),
		Faults:  []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500, Size: 60_000}},
	}, &weir.Transport{Retry: harness.After(0)})
	req := r.Quirk("PUT", "/echo", strings.Repeat("b", 100_000))
	resp, err := r.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); len(body) != 100_000 || err != nil || resp.ProtoMajor != 2 {
		t.Errorf("echo = %d bytes, %v by %s, want 100000 by HTTP/2", len(body), err, resp.Proto)
	}
	if got := len(r.Vendor.Arrivals()); got != 2 || r.Server.Conns() != 1 {
		t.Errorf("arrivals, connections = %d, %d, want 2, 1", got, r.Server.Conns())
	}
}
