package lanes_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// long, by WEIR_LONG in the environment, is set for a night's tests.
var long = os.Getenv("WEIR_LONG") != ""

// A throng is many calls through one lane, and their outcomes.
type throng struct {
	transport *weir.Transport
	url       string
	status    []atomic.Int32 // by call: the caller's answer
	ended     []atomic.Int32 // by call: how often it ended
	impatient []bool         // by call: its context ended early
	untyped   atomic.Pointer[error]
}

func newThrong(transport *weir.Transport, url string, calls int) *throng {
	return &throng{transport: transport, url: url, status: make([]atomic.Int32, calls), ended: make([]atomic.Int32, calls), impatient: make([]bool, calls)}
}

// run sends all the calls from a number of goroutines. One call in fifty has a deadline that it may
// miss. Calls have priorities and tenants.
func (c *throng) run(t *testing.T, goroutines int) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(c.ended)); i = next.Add(1) - 1 {
				c.call(t.Context(), int(i))
			}
		})
	}
	all.Wait()
	if err := c.untyped.Load(); err != nil {
		t.Errorf("a call ended with %v, want a *weir.Error", *err)
	}
	for i := range c.ended {
		if n := c.ended[i].Load(); n != 1 {
			t.Fatalf("call %d ended %d times, want once", i, n)
		}
	}
	if s := c.transport.Snapshot(); len(s) != 1 || s[0].InFlight != 0 || s[0].Waiting != 0 || s[0].Requests != 0 {
		t.Errorf("after all calls, the lanes are %+v, want one, empty", s)
	}
}

func (c *throng) call(ctx context.Context, i int) {
	ctx = weir.WithTenant(weir.WithPriority(ctx, weir.Priority(i%3)), strconv.Itoa(i%7), 1+i%2)
	if c.impatient[i] = rand.IntN(50) == 0; c.impatient[i] {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rand.N(30*time.Millisecond))
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, http.NoBody)
	if err != nil {
		panic(err)
	}
	req.Header.Set(testserver.DefaultIDHeader, strconv.Itoa(i))
	resp, err := c.transport.RoundTrip(req)
	c.ended[i].Add(1)
	if typed := new(weir.Error); err != nil && !errors.As(err, &typed) || (err == nil) == (resp == nil) {
		c.untyped.CompareAndSwap(nil, &err)
	}
	if resp != nil {
		c.status[i].Store(int32(resp.StatusCode))
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// agree compares callers' answers with how often each call was served.
func (c *throng) agree(t *testing.T, served func(call int) int) {
	answered, unanswered := 0, 0
	for i := range c.ended {
		switch ok := c.status[i].Load() == http.StatusOK; {
		case served(i) > 1:
			t.Fatalf("call %d was served %d times", i, served(i))
		case ok && served(i) != 1:
			t.Fatalf("call %d was answered 200, and not served", i)
		case !ok && served(i) == 1 && !c.impatient[i]:
			t.Fatalf("call %d was served and has the status %d", i, c.status[i].Load())
		case ok:
			answered++
		default:
			unanswered++
		}
	}
	if answered < len(c.ended)*9/10 {
		t.Errorf("%d of %d calls were answered, want nine in ten", answered, len(c.ended))
	}
	t.Logf("%d calls: %d answered, %d not", len(c.ended), answered, unanswered)
}

// A tally is a base that records which calls it has served, and how many at a time. A few calls are
// refused, or fail.
type tally struct {
	served       []atomic.Int32
	flying, most atomic.Int32
}

func (b *tally) RoundTrip(req *http.Request) (*http.Response, error) {
	n := b.flying.Add(1)
	defer b.flying.Add(-1)
	for most := b.most.Load(); n > most && !b.most.CompareAndSwap(most, n); most = b.most.Load() {
	}
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req, Body: io.NopCloser(strings.NewReader("ok"))}
	switch rand.IntN(2000) {
	case 0:
		return nil, errors.New("connection reset")
	case 1:
		resp.StatusCode = http.StatusTooManyRequests
		resp.Header.Set("Retry-After-Ms", "1")
	default:
		i, err := strconv.Atoi(req.Header.Get(testserver.DefaultIDHeader))
		if err != nil {
			return nil, err
		}
		b.served[i].Add(1)
	}
	return resp, nil
}

// WEIR_LONG makes it a million calls, from 10,000 goroutines.
func TestEachOfManyCallsEndsOnce(t *testing.T) {
	calls, goroutines := 20_000/fewer, 1_000/fewer
	if long {
		calls, goroutines = 1_000_000, 10_000
	}
	base := &tally{served: make([]atomic.Int32, calls)}
	c := newThrong(&weir.Transport{
		Base: base, InFlight: weir.InFlight{Max: 100}, Line: weir.Line{MaxWaiting: goroutines}, Learn: weir.LearnOff,
		Limits: []throttle.Limit{throttle.TokenBucket(50_000, time.Second, 1000)},
		Retry:  &backoff.Policy{Delay: backoff.Constant(time.Millisecond)},
		Logger: slog.New(slog.DiscardHandler),
	}, "http://vendor.test/", calls)
	defer c.transport.Close()
	c.run(t, goroutines)
	c.agree(t, func(i int) int { return int(base.served[i].Load()) })
	if most := base.most.Load(); most > 100 {
		t.Errorf("%d calls were in flight at a time, want 100 at most", most)
	}
}

// The same over real sockets, where the vendor enforces its own limit.
func TestEachOfManyCallsEndsOnceOverSockets(t *testing.T) {
	calls, goroutines := 1_000, 100
	if long {
		calls, goroutines = 100_000, 1_000
	}
	vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(50)}}
	r := harness.SocketRig(t, vendor, &weir.Transport{InFlight: weir.InFlight{Max: 40}, Line: weir.Line{MaxWaiting: goroutines}})
	c := newThrong(r.Transport, r.Server.URL+"/things", calls)
	c.run(t, goroutines)
	served := make([]int, calls)
	for _, a := range vendor.Arrivals().Granted() {
		i, err := strconv.Atoi(a.ID)
		if err != nil {
			t.Fatal(err)
		}
		served[i]++
	}
	c.agree(t, func(i int) int { return served[i] })
}
