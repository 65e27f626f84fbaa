package sdktest

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/testserver"
)

// An endless is a vendor that gives one answer for ever. It counts the requests.
type endless struct {
	status int
	header http.Header
	sent   atomic.Int32
}

func (e *endless) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	e.sent.Add(1)
	_, _ = io.Copy(io.Discard, req.Body)
	maps.Copy(w.Header(), e.header)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	fmt.Fprintf(w, `{"error":{"message":"no","type":"no","code":%d},"type":"error"}`, e.status)
}

var answers = []struct {
	name   string
	status int
	header http.Header
	ours   int32
}{
	{"429", 429, nil, 11},
	{"429 with 0 s", 429, http.Header{"Retry-After": {"0"}}, 11},
	{"429 with 1 s", 429, http.Header{"Retry-After": {"1"}}, 11},
	{"429 with 20 ms", 429, http.Header{"Retry-After-Ms": {"20"}}, 11},
	{"500", 500, nil, 4},
	{"500 with 1 s", 500, http.Header{"Retry-After": {"1"}}, 4},
	{"503 with 0 s", 503, http.Header{"Retry-After": {"0"}}, 11},
}

// A seat stands between a client and what sends its calls, and counts them.
type seat struct {
	http.RoundTripper
	tries atomic.Int32
}

func (s *seat) RoundTrip(req *http.Request) (*http.Response, error) {
	s.tries.Add(1)
	return s.RoundTripper.RoundTrip(req)
}

// An outcome is what one call of a program came to.
type outcome struct {
	requests int32 // that the vendor saw
	tries    int32 // of the client
	seen     int   // the status that its user sees
}

// run makes one call of the program in a bubble of its own; without a Transport
// if that is nil.
func run(t *testing.T, p program, vendor *endless, transport *weir.Transport) (o outcome) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Run(t, testserver.Pipe, vendor)
		sender := &seat{RoundTripper: server.Transport()}
		if transport != nil {
			transport.Base, transport.Logger = server.Transport(), slog.New(slog.DiscardHandler)
			defer transport.Close()
			sender.RoundTripper = transport
		}
		seen, err := p.call(t, server.URL, &http.Client{Transport: sender})
		if err == nil {
			t.Errorf("the call succeeds, want %d", vendor.status)
		}
		o = outcome{vendor.sent.Load(), sender.tries.Load(), seen}
	})
	return o
}

// One call through a client that tries again, over a Transport that does, too,
// becomes no more requests than the greater of the two numbers; and what its
// user sees is what the vendor said.
func TestOuterRetriesDoNotMultiply(t *testing.T) {
	for _, p := range programs {
		for _, a := range answers {
			t.Run(p.name+"/"+a.name, func(t *testing.T) {
				plain := run(t, p, &endless{status: a.status, header: a.header}, nil)
				got := run(t, p, &endless{status: a.status, header: a.header}, new(weir.Transport))
				if most := max(a.ours, got.tries); p.marked && got.requests > most {
					t.Errorf("%d requests, want %d at most: ours %d, theirs %d", got.requests, most, a.ours, got.tries)
				}
				if got.seen != plain.seen {
					t.Errorf("its user sees %d, want %d", got.seen, plain.seen)
				}
				t.Logf("%d requests: ours %d, theirs %d", got.requests, a.ours, got.tries)
			})
		}
	}
}

// The switch for clients whose tries nothing tells from new calls: one side
// alone tries again.
func TestOneSideAloneTriesAgain(t *testing.T) {
	for _, p := range programs {
		for _, a := range answers {
			t.Run(p.name+"/"+a.name, func(t *testing.T) {
				got := run(t, p, &endless{status: a.status, header: a.header}, &weir.Transport{Retry: backoff.None})
				if got.requests > got.tries {
					t.Errorf("%d requests, want theirs, %d", got.requests, got.tries)
				}
			})
		}
	}
}
