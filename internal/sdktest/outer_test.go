package sdktest

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"golang.org/x/oauth2"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/testserver"
)

// An endless is a vendor that gives one answer until it recovers. It counts the requests.
type endless struct {
	status int
	header http.Header
	until  time.Time // zero: it never recovers
	sent   atomic.Int32
}

func (e *endless) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	e.sent.Add(1)
	_, _ = io.Copy(io.Discard, req.Body)
	w.Header().Set("Content-Type", "application/json")
	if !e.until.IsZero() && !time.Now().Before(e.until) {
		_, _ = io.WriteString(w, "{}")
		return
	}
	maps.Copy(w.Header(), e.header)
	w.WriteHeader(e.status)
	fmt.Fprintf(w, `{"error":{"message":"no","type":"no","code":%d},"type":"error"}`, e.status)
}

var answers = []struct {
	name   string
	status int
	header http.Header
	ours   int32
}{
	{"429", 429, nil, 8},
	{"429 with 0 s", 429, http.Header{"Retry-After": {"0"}}, 8},
	{"429 with 1 s", 429, http.Header{"Retry-After": {"1"}}, 11},
	{"429 with 20 ms", 429, http.Header{"Retry-After-Ms": {"20"}}, 11},
	{"500", 500, nil, 4},
	{"500 with 1 s", 500, http.Header{"Retry-After": {"1"}}, 4},
	{"503 with 0 s", 503, http.Header{"Retry-After": {"0"}}, 8},
}

// A seat is between a client and its base, and counts its calls.
type seat struct {
	http.RoundTripper
	tries atomic.Int32
}

func (s *seat) RoundTrip(req *http.Request) (*http.Response, error) {
	s.tries.Add(1)
	return s.RoundTripper.RoundTrip(req)
}

// An outcome is the result of one call of a program.
type outcome struct {
	requests int32 // that the vendor saw
	tries    int32 // of the client
	seen     int   // status that its user sees
}

// direct is a program over the Transport itself.
func direct(rt http.RoundTripper) http.RoundTripper { return rt }

// run makes one call of the program in its own bubble, through a middleware; nil: without a
// Transport.
func run(t *testing.T, p program, vendor *endless, transport *weir.Transport, via func(http.RoundTripper) http.RoundTripper) (o outcome) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Run(t, testserver.Pipe, vendor)
		sender := &seat{RoundTripper: server.Transport()}
		if transport != nil {
			transport.Base, transport.Logger = server.Transport(), slog.New(slog.DiscardHandler)
			defer transport.Close()
			sender.RoundTripper = transport
		}
		seen, err := p.call(t, server.URL, &http.Client{Transport: via(sender)})
		if err == nil {
			t.Errorf("the call succeeds, want %d", vendor.status)
		}
		o = outcome{vendor.sent.Load(), sender.tries.Load(), seen}
	})
	return o
}

// One call through a retrying client over a Transport with retries sends at most ours + theirs - 1
// requests. Its user sees the vendor's answer.
func TestOuterRetriesDoNotMultiply(t *testing.T) {
	for _, p := range programs {
		for _, a := range answers {
			t.Run(p.name+"/"+a.name, func(t *testing.T) {
				plain := run(t, p, &endless{status: a.status, header: a.header}, nil, direct)
				got := run(t, p, &endless{status: a.status, header: a.header}, new(weir.Transport), direct)
				if most := a.ours + got.tries - 1; got.requests > most {
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

// The same with common middleware between the two.
func TestOuterRetriesDoNotMultiplyThroughMiddleware(t *testing.T) {
	for name, via := range map[string]func(http.RoundTripper) http.RoundTripper{
		"otelhttp": func(rt http.RoundTripper) http.RoundTripper { return otelhttp.NewTransport(rt) },
		"oauth2": func(rt http.RoundTripper) http.RoundTripper {
			return &oauth2.Transport{Base: rt, Source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "token"})}
		},
	} {
		for _, p := range programs {
			for _, a := range answers {
				if a.header != nil {
					continue
				}
				t.Run(name+"/"+p.name+"/"+a.name, func(t *testing.T) {
					got := run(t, p, &endless{status: a.status}, new(weir.Transport), via)
					if most := a.ours + got.tries - 1; got.requests > most {
						t.Errorf("%d requests, want %d at most: ours %d, theirs %d", got.requests, most, a.ours, got.tries)
					}
				})
			}
		}
	}
}

// Only the client retries if the Transport's policy is None.
func TestOneSideAloneTriesAgain(t *testing.T) {
	for _, p := range programs {
		for _, a := range answers {
			t.Run(p.name+"/"+a.name, func(t *testing.T) {
				got := run(t, p, &endless{status: a.status, header: a.header}, &weir.Transport{Retry: backoff.None}, direct)
				if got.requests > got.tries {
					t.Errorf("%d requests, want theirs, %d", got.requests, got.tries)
				}
			})
		}
	}
}

var outages = []time.Duration{time.Second, 2 * time.Second, 6 * time.Second}

// survives reports whether a call that begins with the outage succeeds.
func survives(t *testing.T, p program, outage time.Duration, transport *weir.Transport) (ok bool) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Run(t, testserver.Pipe, &endless{status: 503, until: time.Now().Add(outage)})
		client := &http.Client{Transport: server.Transport()}
		if transport != nil {
			transport.Base, transport.Logger = server.Transport(), slog.New(slog.DiscardHandler)
			defer transport.Close()
			client.Transport = transport
		}
		status, err := p.call(t, server.URL, client)
		ok = err == nil || status == http.StatusOK
	})
	return ok
}

// A client that survives an outage alone does so over a Transport as well.
func TestOutagesAreRiddenOutAsWell(t *testing.T) {
	const runs = 40
	var table strings.Builder
	for _, p := range programs {
		fmt.Fprintf(&table, "\n%-38s", p.name)
		for _, outage := range outages {
			alone, over := 0, 0
			for range runs {
				if survives(t, p, outage, nil) {
					alone++
				}
				if survives(t, p, outage, new(weir.Transport)) {
					over++
				}
			}
			// For two equal shares the difference is greater once in 30,000.
			share := float64(alone+over+1) / (2*runs + 2)
			if most := 4 * math.Sqrt(2*runs*share*(1-share)); float64(alone-over) > most {
				t.Errorf("%s, outage of %v: %d of %d succeed, alone %d", p.name, outage, over, runs, alone)
			}
			fmt.Fprintf(&table, " | %v %3d %%, %3d %%", outage, 100*alone/runs, 100*over/runs)
		}
	}
	t.Logf("calls that succeed alone, and over Weir:%s", table.String())
}

// The same over sockets and in real time, for clients whose backoff should outlast an outage.
func TestOutageOverSockets(t *testing.T) {
	server := testserver.Run(t, testserver.Listen, &endless{status: 503, until: time.Now().Add(1500 * time.Millisecond)})
	transport := &weir.Transport{Base: server.Transport()}
	defer transport.Close()
	var wg sync.WaitGroup
	for _, p := range programs {
		if !strings.HasPrefix(p.name, "go-retryablehttp") {
			continue
		}
		wg.Go(func() {
			if status, err := p.call(t, server.URL, &http.Client{Transport: transport}); err != nil && status != http.StatusOK {
				t.Errorf("%s = %d, %v, want success", p.name, status, err)
			}
		})
	}
	wg.Wait()
}
