package testserver_test

import (
	"bufio"
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

	"github.com/weirgo/weir/internal/testserver"
)

func quirky(t *testing.T) (*testserver.Vendor, *testserver.Server) {
	v := &testserver.Vendor{Handler: testserver.Quirks()}
	return v, testserver.Run(t, testserver.Listen, v)
}

// do sends a request and returns the answer with its body read whole.
func do(t *testing.T, client *http.Client, req *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestQuirksSwitchProtocolsEchoes(t *testing.T) {
	vendor, server := quirky(t)
	req := request(t, "GET", server.URL+"/switch", "")
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "chat")
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "chat" {
		t.Fatalf("answer = %d %v, body %T", resp.StatusCode, resp.Header, resp.Body)
	}
	defer conn.Close()
	fmt.Fprintln(conn, "hello")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
		t.Errorf("echo = %q, %v", line, err)
	}
	if got := vendor.Arrivals().Count(101); got != 1 {
		t.Errorf("recorded 101s = %d, want 1", got)
	}
}

func TestQuirksConnectTunnels(t *testing.T) {
	_, server := quirky(t)
	r, w := io.Pipe()
	req, _ := http.NewRequest(http.MethodConnect, server.URL, r)
	req.URL.Opaque = "far.example:443"
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	go fmt.Fprintln(w, "hello")
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); line != "hello\n" {
		t.Errorf("echo = %q, %v", line, err)
	}
	w.Close()
}

func TestQuirksHeaderLinesAsTheyAre(t *testing.T) {
	vendor, server := quirky(t)
	query := url.Values{"status": {"429"}, "line": {"Retry-After: 1", "Retry-After: 5", "X-Folded: one\r\n two"}}
	resp, _ := do(t, server.Client(), request(t, "GET", server.URL+"/lines?"+query.Encode(), ""))
	if got := resp.Header.Values("Retry-After"); resp.StatusCode != 429 || !slices.Equal(got, []string{"1", "5"}) {
		t.Errorf("answer = %d, Retry-After %q", resp.StatusCode, got)
	}
	if got := resp.Header.Get("X-Folded"); got != "one two" {
		t.Errorf("X-Folded = %q, want it joined", got)
	}
	if got := vendor.Arrivals().Count(429); got != 1 {
		t.Errorf("recorded 429s = %d, want 1", got)
	}
}

func TestQuirksInterimAnswersFlood(t *testing.T) {
	vendor, server := quirky(t)
	interim := 0
	trace := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { interim++; return nil }}
	req := request(t, "GET", server.URL+"/interim?n=1000", "")
	resp, _ := do(t, server.Client(), req.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
	if resp.StatusCode != 200 || interim != 1000 {
		t.Errorf("answer = %d after %d interim ones, want 200 after 1000", resp.StatusCode, interim)
	}
	if got := vendor.Arrivals().Count(200); got != 1 {
		t.Errorf("recorded 200s = %d, want 1", got)
	}
}

func TestQuirksTrailers(t *testing.T) {
	_, server := quirky(t)
	resp, body := do(t, server.Client(), request(t, "GET", server.URL+"/trailers", ""))
	if body != "body\n" || resp.Trailer.Get("X-Sum") != "5" || resp.Trailer.Get("X-Late") != "yes" {
		t.Errorf("body %q, trailers %v", body, resp.Trailer)
	}
}

func TestQuirksEventsComeOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Run(t, testserver.Pipe, testserver.Quirks())
		start := time.Now()
		resp, err := server.Client().Get(server.URL + "/events?n=3&every=1m")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var got []time.Duration
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data: ") {
				got = append(got, time.Since(start))
			}
		}
		if want := []time.Duration{0, time.Minute, 2 * time.Minute}; !slices.Equal(got, want) {
			t.Errorf("events after %v, want %v", got, want)
		}
	})
}

func TestQuirksCompressWhenAsked(t *testing.T) {
	_, server := quirky(t)
	resp, plain := do(t, server.Client(), request(t, "GET", server.URL+"/gzip", ""))
	if !resp.Uncompressed || len(plain) != 64*16 {
		t.Errorf("transparent: uncompressed %v, %d bytes", resp.Uncompressed, len(plain))
	}
	req := request(t, "GET", server.URL+"/gzip", "")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, raw := do(t, server.Client(), req)
	if resp.Header.Get("Content-Encoding") != "gzip" || len(raw) >= len(plain) {
		t.Errorf("asked: %v, %d bytes", resp.Header, len(raw))
	}
	req.Header.Set("Accept-Encoding", "identity")
	if resp, body := do(t, server.Client(), req); resp.Header.Get("Content-Encoding") != "" || body != plain {
		t.Errorf("refused: %v, %d bytes", resp.Header, len(body))
	}
}

func TestQuirksExpectContinue(t *testing.T) {
	_, server := quirky(t)
	for path, want := range map[string]struct {
		status, continued int
		body              string
	}{
		"/echo":   {200, 1, "the body"},
		"/reject": {417, 0, ""},
	} {
		continued := 0
		trace := &httptrace.ClientTrace{Got100Continue: func() { continued++ }}
		req := request(t, "PUT", server.URL+path, "the body")
		req.Header.Set("Expect", "100-continue")
		transport := server.Transport()
		transport.ExpectContinueTimeout = time.Minute
		client := &http.Client{Transport: transport}
		resp, body := do(t, client, req.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
		if resp.StatusCode != want.status || continued != want.continued || body != want.body {
			t.Errorf("%s = %d %q after %d times 100, want %+v", path, resp.StatusCode, body, continued, want)
		}
	}
}

func TestQuirksBodiesAndRedirects(t *testing.T) {
	_, server := quirky(t)
	client := server.Client()
	if resp, body := do(t, client, request(t, "GET", server.URL+"/body?size=70000", "")); len(body) != 70000 {
		t.Errorf("body = %d bytes of %d", len(body), resp.ContentLength)
	}
	if resp, body := do(t, client, request(t, "HEAD", server.URL+"/body?size=70000", "")); resp.ContentLength != 70000 || body != "" {
		t.Errorf("HEAD = length %d, body %q", resp.ContentLength, body)
	}
	if resp, _ := do(t, client, request(t, "GET", server.URL+"/field?size=1000000", "")); len(resp.Header.Get("X-Field")) != 1000000 {
		t.Errorf("X-Field = %d bytes", len(resp.Header.Get("X-Field")))
	}
	resp, body := do(t, client, request(t, "POST", server.URL+"/redirect?status=307&to=/echo", "again"))
	if resp.StatusCode != 200 || body != "again" {
		t.Errorf("redirected = %d %q", resp.StatusCode, body)
	}
}

func TestQuirksThatTakeOverNeedHTTP1(t *testing.T) {
	server := testserver.Run(t, testserver.ListenTLS, testserver.Quirks())
	mustGet(t, server.Client(), server.URL+"/lines", 505)
}
