package headers_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/weirgo/weir/headers"
)

// speaker has its hints in the body, also of a success.
var speaker = &headers.Dialect{
	Vendor: "Speaker",
	Body: []headers.Field{
		{Name: "wait", Fact: headers.FactRetryAfter},
		{Name: "list.*.error", Fact: headers.FactRefusal, Words: map[string]headers.Scope{"slow down*": headers.ScopeRoute}},
		{Name: "code", Fact: headers.FactPermanent, Words: map[string]headers.Scope{"7": 0}},
	},
	BodyOfSuccess: true,
}

// A watchedBody counts its calls.
type watchedBody struct {
	io.Reader
	read, closed int
}

var errClosed = errors.New("read after close")

func (b *watchedBody) Read(p []byte) (int, error) {
	if b.closed > 0 {
		return 0, errClosed
	}
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *watchedBody) Close() error {
	b.closed++
	return nil
}

func bodied(status int, text string, fields ...string) (*http.Response, *watchedBody) {
	body := &watchedBody{Reader: strings.NewReader(text)}
	resp := response(status, fields...)
	resp.Body, resp.ContentLength = body, int64(len(text))
	return resp, body
}

func TestBodyHints(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		text   string
		want   headers.Signal
	}{
		{"a wait", 429, `{"wait":3}`, headers.Signal{Throttled: true, NotProcessed: true, Reason: "status_429", RetryAfter: 3 * time.Second, HasRetryAfter: true}},
		{"a protobuf duration", 500, `{"wait":"3.700s"}`, headers.Signal{RetryAfter: 3700 * time.Millisecond, HasRetryAfter: true}},
		{"a refusal of a success", 200, `{"list":[{"error":"fine"},{"error":"slow down, please"}]}`, headers.Signal{Throttled: true, Reason: "body", Scope: headers.ScopeRoute}},
		{"for ever", 429, `{"code":7}`, headers.Signal{Throttled: true, NotProcessed: true, Permanent: true, Reason: "no_retry"}},
		{"elsewhere", 500, `{"other":{"wait":3},"list":{"error":"slow down"},"x":[{"wait":3}]}`, headers.Signal{}},
		{"words", 500, `{"wait":"tomorrow"}`, headers.Signal{}},
		{"below zero", 500, `{"wait":-3}`, headers.Signal{}},
		{"too large", 500, `{"wait":1e99}`, headers.Signal{}},
		{"neither", 500, `{"wait":null,"code":true}`, headers.Signal{}},
		{"broken", 500, `{"wait":3,`, headers.Signal{}},
		{"not JSON", 500, `<html>`, headers.Signal{}},
		{"empty", 500, ``, headers.Signal{}},
		{"cut off at the bound", 500, `{"wait":3,"text":"` + strings.Repeat("x", 64<<10) + `"}`, headers.Signal{RetryAfter: 3 * time.Second, HasRetryAfter: true}},
		{"behind the bound", 500, `{"text":"` + strings.Repeat("x", 64<<10) + `","wait":3}`, headers.Signal{}},
		{"nested too deep", 500, strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), headers.Signal{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := bodied(c.status, c.text)
			if got := speaker.Parse(resp, received); !equal(got, c.want) {
				t.Errorf("Parse = %+v, want %+v", got, c.want)
			}
			if body.read > 64<<10 {
				t.Errorf("%d bytes of the body read, want at most 64 KiB", body.read)
			}
			checkBody(t, resp, body, c.text)
		})
	}
}

// checkBody reads a body as its caller would, and closes it.
func checkBody(t *testing.T, resp *http.Response, body *watchedBody, want string) {
	t.Helper()
	if body.closed != 0 {
		t.Errorf("body closed %d times before the caller did", body.closed)
	}
	if err := iotest.TestReader(struct{ io.Reader }{resp.Body}, []byte(want)); err != nil {
		t.Errorf("the body does not read as it was sent: %v", err)
	}
	resp.Body.Close()
	if body.closed != 1 {
		t.Errorf("body closed %d times, want once", body.closed)
	}
	if _, err := resp.Body.Read(make([]byte, 1)); err != errClosed {
		t.Errorf("Read after Close = %v, want %v", err, errClosed)
	}
}

func TestBodyHintsAreNotSoughtDeepDown(t *testing.T) {
	const deep = 40
	d := &headers.Dialect{Body: []headers.Field{{Name: strings.Repeat("*.", deep-1) + "*", Fact: headers.FactRetryAfter}}}
	resp, _ := bodied(429, strings.Repeat("[", deep)+"3"+strings.Repeat("]", deep))
	if got := d.Parse(resp, received); got.HasRetryAfter {
		t.Errorf("RetryAfter = %v, want none from %d arrays down", got.RetryAfter, deep)
	}
}

func TestBodyIsLeftAlone(t *testing.T) {
	const text = `{"wait":3}`
	plain := func(resp *http.Response) {}
	unmeasured := func(resp *http.Response) { resp.ContentLength = -1 }
	for _, c := range []struct {
		name    string
		dialect *headers.Dialect
		status  int
		fields  []string
		change  func(*http.Response)
	}{
		{"in the generic dialect", nil, 404, nil, plain},
		{"in the generic dialect whose header states the wait", nil, 429, []string{"Retry-After", "1"}, plain},
		{"of a quota that states the wait", nil, 429, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9"}, plain},
		{"of a success in the generic dialect", nil, 200, []string{"Content-Type", "application/json"}, plain},
		{"where no dialect says so", &headers.Dialect{Body: speaker.Body}, 200, nil, plain},
		{"where the header said it", &headers.Dialect{Body: speaker.Body[:1]}, 429, []string{"Retry-After", "1"}, plain},
		{"of an event stream", speaker, 429, []string{"Content-Type", "text/event-stream"}, plain},
		{"of a stream of JSON", speaker, 429, []string{"Content-Type", "application/x-ndjson"}, plain},
		{"of a page", speaker, 429, []string{"Content-Type", "text/html; charset=utf-8"}, plain},
		{"encoded", speaker, 429, []string{"Content-Encoding", "br"}, plain},
		{"partial", speaker, 206, nil, plain},
		{"of a range", speaker, 200, []string{"Content-Range", "bytes 0-9/10"}, plain},
		{"of 101", speaker, 101, nil, plain},
		{"of a redirect", speaker, 302, nil, plain},
		{"of HEAD", speaker, 429, nil, func(resp *http.Response) { resp.Request.Method = http.MethodHead }},
		{"of CONNECT", speaker, 200, nil, func(resp *http.Response) { resp.Request.Method = http.MethodConnect }},
		{"of a success of unknown length and type", speaker, 200, nil, unmeasured},
		{"of an event stream of unknown length", speaker, 200, []string{"Content-Type", "text/event-stream"}, unmeasured},
		{"of a stream of JSON of unknown length", speaker, 200, []string{"Content-Type", "application/stream+json"}, unmeasured},
		{"of an empty success", speaker, 200, nil, func(resp *http.Response) { resp.ContentLength = 0 }},
		{"of a long success", speaker, 200, nil, func(resp *http.Response) { resp.ContentLength = 64<<10 + 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := bodied(c.status, text, c.fields...)
			c.change(resp)
			c.dialect.Parse(resp, received)
			if resp.Body != io.ReadCloser(body) || body.read != 0 {
				t.Errorf("body is a %T with %d bytes read, want it untouched", resp.Body, body.read)
			}
		})
	}
}

// A quota of zero is permanent only if neither header nor body states a time.
func TestBodyHasTheTimeOfQuotaOfZero(t *testing.T) {
	resp, _ := bodied(429, `{"wait":3}`, "X-RateLimit-Limit", "0")
	if got := speaker.Parse(resp, received); got.Permanent || got.Reason != "status_429" {
		t.Errorf("Parse = %+v, want it not permanent", got)
	}
}

func TestBodyFromACacheReportsNoQuotas(t *testing.T) {
	d := &headers.Dialect{BodyOfSuccess: true, Body: []headers.Field{{Name: "left", Fact: headers.FactRemaining}}}
	for age, want := range map[string]int{"0": 1, "60": 0} {
		resp := response(200, "Content-Type", "application/json", "Age", age)
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(`{"left":3}`)), 10
		if got := d.Parse(resp, received).Quotas; len(got) != want {
			t.Errorf("Quotas at an age of %s = %+v, want %d", age, got, want)
		}
	}
}

func TestBodyErrorComesAfterWhatWasRead(t *testing.T) {
	broken := errors.New("connection reset")
	body := &watchedBody{Reader: io.MultiReader(strings.NewReader(`{"wait":3`), iotest.ErrReader(broken))}
	resp := response(429)
	resp.Body = body
	speaker.Parse(resp, received)
	text, err := io.ReadAll(resp.Body)
	if string(text) != `{"wait":3` || err != broken {
		t.Errorf("body reads %q, %v, want what arrived and the error", text, err)
	}
}

func TestBodyReadTwice(t *testing.T) {
	resp, body := bodied(429, `{"wait":3}`)
	for range 2 {
		if got := speaker.Parse(resp, received); got.RetryAfter != 3*time.Second {
			t.Errorf("RetryAfter = %v, want 3s", got.RetryAfter)
		}
	}
	checkBody(t, resp, body, `{"wait":3}`)
}

func TestBodyIsKnownWhenItIsClosed(t *testing.T) {
	resp, body := bodied(429, `{"wait":3}`)
	speaker.Parse(resp, received)
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if got := speaker.Parse(resp, received); got.RetryAfter != 3*time.Second {
		t.Errorf("RetryAfter = %v, want 3s", got.RetryAfter)
	}
	if body.closed != 1 {
		t.Errorf("body closed %d times, want once", body.closed)
	}
}

// Over a real connection: the body stays whole, a read after Close fails as it does
// with net/http, and the connection is used again.
func TestBodyOverConnection(t *testing.T) {
	text := `{"wait":3,"text":"` + strings.Repeat("x", 100_000) + `"}`
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, text)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	for range 3 {
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if got := speaker.Parse(resp, received); got.RetryAfter != 3*time.Second {
			t.Errorf("RetryAfter = %v, want 3s", got.RetryAfter)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || !bytes.Equal(got, []byte(text)) {
			t.Errorf("body of %d bytes, %v, want the %d that were sent", len(got), err, len(text))
		}
		resp.Body.Close()
		if _, err := resp.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("Read after Close = %v, want an error", err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}
