package retries_test

import (
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// A streamer answers in chunks. Every second stream then stays open, if open is set.
type streamer struct {
	open bool
	n    atomic.Int32
}

func (s *streamer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n := s.n.Add(1)
	_, _ = io.WriteString(w, "part")
	_ = http.NewResponseController(w).Flush()
	if s.open && n%2 == 1 {
		<-req.Context().Done()
	}
}

// net/http keeps a reference to the response of a stream, not to the caller's body.
func TestDroppedStreamEndsItsFlight(t *testing.T) {
	for name, open := range harness.Protocols {
		for state, stays := range map[string]bool{"open": true, "ended": false} {
			t.Run(name+" "+state, func(t *testing.T) {
				r := harness.NewRig(t, open, &testserver.Vendor{Handler: &streamer{open: stays}}, &weir.Transport{InFlight: weir.InFlight{Max: 1}, Logger: slog.New(slog.DiscardHandler)})
				if _, err := io.ReadFull(r.Open(t.Context(), "dropped").Body, make([]byte, 4)); err != nil {
					t.Fatal(err)
				}
				r.WantServedAfterCollections()
				if resp, err := r.Client.Get(r.Server.URL); err != nil || resp.StatusCode != 200 {
					t.Fatalf("GET = %v, %v, want 200", resp, err)
				}
				r.WantShutdownAfterCollections()
			})
		}
	}
}

// A body that closes slowly was not dropped.
func TestBodyThatIsBeingClosedWasNotDropped(t *testing.T) {
	var log strings.Builder
	transport := &weir.Transport{Base: slowlyClosed{}, InFlight: weir.InFlight{Max: 1}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	resp, err := transport.RoundTrip(harness.GetOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if transport.Close(); log.Len() > 0 {
		t.Errorf("log after Close of the body: %s, want none", log.String())
	}
}

// A slowlyClosed is a base, and the body of its answers. The garbage collector runs while that is
// closed.
type slowlyClosed struct{ io.Reader }

func (slowlyClosed) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: slowlyClosed{http.NoBody}}, nil
}

func (slowlyClosed) Close() error {
	for range 3 {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// An answer without a body needs no Close, over any protocol.
func TestAnswerWithoutABodyIsNotInFlight(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/none" {
			w.WriteHeader(http.StatusNoContent)
		}
	})
	for name, open := range harness.Protocols {
		r := harness.NewRig(t, open, &testserver.Vendor{Handler: handler}, &weir.Transport{InFlight: weir.InFlight{Max: 1}})
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			for _, path := range []string{"/", "/none"} {
				req, _ := http.NewRequestWithContext(t.Context(), method, r.Server.URL+path, nil)
				resp, err := r.Transport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				if n := r.Flying(); n != 0 || resp.Proto != name {
					t.Errorf("%s: %d in flight after %s %s, want 0 by %s", resp.Proto, n, method, path, name)
				}
				if body, err := io.ReadAll(resp.Body); len(body) > 0 || err != nil {
					t.Errorf("%s: body = %q, %v, want none", name, body, err)
				}
			}
		}
	}
}

// An upgraded connection is in flight until it is closed, even after its server has sent
// everything, and is detected if it is dropped.
func TestUpgradedConnectionIsInFlightUntilItIsClosed(t *testing.T) {
	for name, early := range map[string]bool{"to its end": false, "to the headers": true} {
		t.Run(name, func(t *testing.T) {
			r := harness.SocketRig(t, &testserver.Vendor{Handler: testserver.Quirks()}, &weir.Transport{InFlight: weir.InFlight{Max: 1, UntilHeaders: early}})
			resp, err := r.Transport.RoundTrip(r.Upgrade())
			if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("GET = %v, %v, want 101", resp, err)
			}
			conn := resp.Body.(io.ReadWriteCloser)
			if want := map[bool]int{false: 1}[early]; r.Flying() != want {
				t.Errorf("%d in flight while the connection is open, want %d", r.Flying(), want)
			}
			_, _ = io.WriteString(conn, "hello\n")
			got := make([]byte, 6)
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello\n" {
				t.Errorf("echo = %q, %v, want hello", got, err)
			}
			if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Errorf("CloseWrite = %v", err)
			}
			_, _ = io.Copy(io.Discard, conn)
			if want := map[bool]int{false: 1}[early]; r.Flying() != want {
				t.Errorf("%d in flight after the server's end, want %d", r.Flying(), want)
			}
			if err := conn.Close(); err != nil || r.Flying() != 0 {
				t.Errorf("Close = %v, %d in flight afterwards, want 0", err, r.Flying())
			}
			if _, err := r.Transport.RoundTrip(r.Upgrade()); err != nil {
				t.Fatal(err)
			}
			r.WantShutdownAfterCollections()
		})
	}
}
