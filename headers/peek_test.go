package headers_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/headers"
)

// piped returns a response whose body is a pipe, with a text written to it at once.
func piped(ctx context.Context, status int, length int64, text string) (*http.Response, *io.PipeWriter) {
	in, out := io.Pipe()
	resp := response(status, "Content-Type", "application/json")
	resp.Request = resp.Request.WithContext(ctx)
	resp.Body, resp.ContentLength = in, length
	go io.WriteString(out, text)
	return resp, out
}

// A stalled body is handed over after five seconds: the received part is read, and the caller gets
// every byte when it arrives.
func TestBodyThatStandsStillIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first, rest = `{"wait":3,"text":"`, `slow"}`
		for _, status := range []int{200, 429} {
			began := time.Now()
			resp, out := piped(t.Context(), status, int64(len(first+rest)), first)
			got := speaker.Parse(resp, received)
			if waited := time.Since(began); waited != 5*time.Second {
				t.Errorf("Parse took %v, want 5s", waited)
			}
			if got.RetryAfter != 3*time.Second {
				t.Errorf("RetryAfter = %v, want the 3s received", got.RetryAfter)
			}
			began = time.Now()
			if again := speaker.Parse(resp, received); again.RetryAfter != 3*time.Second || time.Since(began) != 0 {
				t.Errorf("Parse = %+v after %v, want the same at once", again, time.Since(began))
			}
			go func() {
				time.Sleep(time.Minute)
				io.WriteString(out, rest)
				out.Close()
			}()
			text, err := io.ReadAll(resp.Body)
			if string(text) != first+rest || err != nil || time.Since(began) != time.Minute {
				t.Errorf("body reads %q, %v after %v, want %q after 1m", text, err, time.Since(began), first+rest)
			}
			resp.Body.Close()
		}
	})
}

// Reading or closing the body ends the goroutine that peeked; otherwise the bubble would not end.
func TestBodyThatStandsStillIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resp, _ := piped(t.Context(), 429, -1, `{"wait"`)
		speaker.Parse(resp, received)
		head := make([]byte, 3)
		if n, err := resp.Body.Read(head); n != 3 || err != nil || string(head) != `{"w` {
			t.Errorf("Read = %d, %v, %q, want the received part", n, err, head)
		}
		go func() {
			time.Sleep(time.Second)
			resp.Body.Close()
		}()
		if text, err := io.ReadAll(resp.Body); string(text) != `ait"` || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("body reads %q, %v, want the rest received and an error of a closed body", text, err)
		}
	})
}

func TestBodyIsWaitedForAsLongAsItsRequestLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		resp, _ := piped(ctx, 429, -1, "")
		began := time.Now()
		speaker.Parse(resp, received)
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("Parse took %v, want the 1s that its request had", waited)
		}
		resp.Body.Close()
	})
}

// A response may be parsed again after its call has ended.
func TestBodyIsReadWhenItsRequestHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		resp, out := piped(ctx, 429, -1, "")
		go func() {
			io.WriteString(out, `{"wait":3}`)
			out.Close()
		}()
		if got := speaker.Parse(resp, received); got.RetryAfter != 3*time.Second {
			t.Errorf("RetryAfter = %v, want 3s", got.RetryAfter)
		}
	})
}

type panickingBody struct{}

func (panickingBody) Read([]byte) (int, error) { panic("broken body") }
func (panickingBody) Close() error             { return nil }

// A panic of the body reaches its reader only.
func TestBodyThatPanics(t *testing.T) {
	resp := response(429)
	resp.Body = panickingBody{}
	speaker.Parse(resp, received)
	defer func() {
		if fault := recover(); fault != "broken body" {
			t.Errorf("Read panics with %v, want the body's panic", fault)
		}
	}()
	resp.Body.Read(make([]byte, 1))
}

// ParseHeader never touches the body, and reports whether it matters.
func TestParseHeader(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		fields []string
		want   headers.Signal
		more   bool
	}{
		{"a body that may say why", 429, nil, headers.Signal{Throttled: true, NotProcessed: true, Reason: headers.Reason429}, true},
		{"a wait", 503, []string{"Retry-After", "9"}, headers.Signal{Throttled: true, Reason: headers.Reason503, RetryAfter: 9 * time.Second, HasRetryAfter: true}, true},
		{"a success that may refuse", 200, nil, headers.Signal{}, true},
		{"a stream", 200, []string{"Content-Type", "text/event-stream"}, headers.Signal{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := bodied(c.status, `{"wait":3}`, c.fields...)
			got, more := speaker.ParseHeader(resp, received)
			if !equal(got, c.want) || more != c.more {
				t.Errorf("ParseHeader = %+v, %v, want %+v, %v", got, more, c.want, c.more)
			}
			if resp.Body != io.ReadCloser(body) || body.read != 0 {
				t.Errorf("%d bytes of the body read, want it untouched", body.read)
			}
		})
	}
	if got, more := speaker.ParseHeader(nil, received); !equal(got, headers.Signal{}) || more {
		t.Errorf("ParseHeader(nil) = %+v, %v, want nothing", got, more)
	}
	var none *headers.Dialect
	if got, more := none.ParseHeader(response(429), received); !got.Throttled || more {
		t.Errorf("ParseHeader = %+v, %v in the generic dialect, want a refusal and no more", got, more)
	}
}

// Over a real connection, in real time: half of a body comes, the rest ten seconds
// later. It is read whole, also in one piece of 100,000 bytes, and closing it early
// ends everything.
func TestSlowBodyOverConnection(t *testing.T) {
	t.Parallel()
	first := `{"wait":3,"text":"` + strings.Repeat("x", 30_000)
	rest := strings.Repeat("y", 30_000) + `"}`
	gone := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, first)
		w.(http.Flusher).Flush()
		select {
		case <-time.After(10 * time.Second):
			io.WriteString(w, rest)
		case <-req.Context().Done():
			gone <- struct{}{}
		}
	}))
	defer server.Close()
	get := func() *http.Response {
		began := time.Now()
		resp, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if got := speaker.Parse(resp, time.Now()); got.RetryAfter != 3*time.Second {
			t.Errorf("RetryAfter = %v, want 3s", got.RetryAfter)
		}
		if waited := time.Since(began); waited > 9*time.Second {
			t.Errorf("Parse took %v, want about 5s", waited)
		}
		return resp
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		resp := get()
		if err := resp.Body.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("Close = %v", err)
		}
		<-gone
	}()
	resp := get()
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(text, []byte(first+rest)) {
		t.Errorf("body of %d bytes, %v, want the %d that were sent", len(text), err, len(first+rest))
	}
	<-closed
}
