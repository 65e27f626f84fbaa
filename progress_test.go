package weir_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A lane that was refused serves again. A bubble's clock stands still between
// two readings, so the same cases also run over real sockets in real time.

// A recovery is a lane that is refused a few times, for so long each, and then
// served as before.
type recovery struct {
	name     string
	status   int
	header   http.Header
	refusals int32
	paused   time.Duration // by all the refusals together
	limits   []throttle.Limit
	dialect  *headers.Dialect
	maxPause time.Duration
}

// recoveries returns one refusal of each kind, in each kind of lane.
func recoveries() (all []recovery) {
	kinds := []recovery{
		{name: "seconds", status: 429, header: harness.Hints("1"), refusals: 1, paused: time.Second},
		{name: "milliseconds", status: 429, header: http.Header{"Retry-After-Ms": {"200"}}, refusals: 2, paused: 400 * time.Millisecond},
		{name: "bare", status: 429, refusals: 1},
		{name: "503", status: 503, header: harness.Hints("1"), refusals: 1, paused: time.Second},
		{name: "longer than MaxPause", status: 429, header: harness.Hints("1"), refusals: 1, paused: time.Second, maxPause: 500 * time.Millisecond},
	}
	limits := []throttle.Limit{throttle.TokenBucket(50, time.Second, 10)}
	for _, kind := range kinds {
		for _, c := range []struct {
			of      string
			limits  []throttle.Limit
			dialect *headers.Dialect
		}{
			{"lane without limits", nil, nil},
			{"lane with limits", limits, nil},
			{"route of a lane without limits", nil, harness.ScopedBy(headers.ScopeRoute)},
			{"route of a lane with limits", limits, harness.ScopedBy(headers.ScopeRoute)},
		} {
			r := kind
			r.name, r.limits, r.dialect = kind.name+", "+c.of, c.limits, c.dialect
			all = append(all, r)
		}
	}
	return all
}

// A recovering is a recovery under way: the vendor, and what it has served.
type recovering struct {
	recovery
	refuse atomic.Int32
	served atomic.Int64
}

// ServeHTTP takes 300 ms and a little for a good answer: many lanes of 64
// workers each are no more load than two processors can bear.
func (r *recovering) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if r.refuse.Load() > 0 && r.refuse.Add(-1) >= 0 {
		for name, values := range r.header {
			w.Header()[name] = values
		}
		w.WriteHeader(r.status)
		return
	}
	time.Sleep(300*time.Millisecond + rand.N(time.Millisecond))
	r.served.Add(1)
	_, _ = io.WriteString(w, "ok\n")
}

// within returns how many were served in that time.
func (r *recovering) within(d time.Duration) int64 {
	before := r.served.Load()
	time.Sleep(d)
	return r.served.Load() - before
}

// run has 64 workers send through a transport over the base, and requires that
// half of what a second served before is served in one that begins within the
// time after the last pause.
func (r *recovering) run(t *testing.T, base http.RoundTripper, url string, within time.Duration) {
	transport := &weir.Transport{Base: base, Limits: r.limits, Dialect: r.dialect, MaxPause: r.maxPause, Logger: slog.New(slog.DiscardHandler)}
	defer transport.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for ctx.Err() == nil {
				send(ctx, transport, url)
			}
		})
	}
	for r.served.Load() < 2*64 { // all of them are on their way
		r.within(10 * time.Millisecond)
	}
	before := r.within(time.Second)
	r.refuse.Store(r.refusals)
	time.Sleep(r.paused)
	after, again := int64(0), time.Now().Add(within)
	for after < before/2 && !time.Now().After(again) {
		after = r.within(time.Second)
	}
	cancel()
	wg.Wait()
	if left := r.refuse.Load(); left > 0 {
		t.Errorf("%s: %d refusals are left", r.name, left)
	}
	if after < before/2 {
		t.Errorf("%s: served %d in a second that began %v after the pause, and %d in one before it", r.name, after, within, before)
	}
}

// send sends one request. A worker who is refused comes back a little later.
func send(ctx context.Context, transport *weir.Transport, url string) {
	if !harness.Sent(ctx, transport, url) {
		time.Sleep(10 * time.Millisecond)
	}
}

// It takes four seconds. A lane that was refused by chance while the machine was late
// learns a low rate, and needs half a minute to leave it; what never comes back
// does not come in a minute either. No other test runs beside it, and few lanes at a
// time: a call that wakes up too late has lost its permit, and a machine that is
// always late serves little.
func TestRefusedLaneServesAgain(t *testing.T) {
	const (
		together = 6 // they rest nearly all the time
		short    = 3
	)
	room := make(chan struct{}, together)
	var wg sync.WaitGroup
	for i, c := range recoveries() {
		if i%4 == 3 && i > 3 || i > short && testing.Short() {
			continue // as much load as need be: the bubble has all of them
		}
		room <- struct{}{}
		r := &recovering{recovery: c}
		server := testserver.Run(t, testserver.Listen, r)
		wg.Go(func() {
			defer func() { <-room }()
			r.run(t, server.Transport(), server.URL, time.Minute)
		})
	}
	wg.Wait()
}

func TestRefusedLaneServesAgainInABubble(t *testing.T) {
	for _, c := range recoveries() {
		synctest.Test(t, func(t *testing.T) {
			r := &recovering{recovery: c}
			r.run(t, harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()
				r.ServeHTTP(w, req)
				return w.Result(), nil
			}), "http://vendor.example/things", 3*time.Second)
		})
	}
}

// A lane learns a hidden 50/s, and is served at it however its workers behave. Over real
// sockets it has half of the rate in one of six times five seconds.
func TestLearnedLaneServesAfterARest(t *testing.T) {
	for _, c := range restings() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, testserver.Listen, 25, 6)
		})
	}
}

func TestLearnedLaneServesAfterARestInABubble(t *testing.T) {
	for _, c := range restings() {
		synctest.Test(t, func(t *testing.T) { c.run(t, testserver.Pipe, 47, 1) })
	}
}

// A resting says how workers behave that a lane serves at what it has learned.
type resting struct {
	name string
	rest time.Duration // of a worker after a refusal
	idle time.Duration // of all, once, before a refusal by chance
}

// restings are
//
//   - who rests: a worker who is refused gets the response, and comes again 1.2 s later, so an
//     episode has few probes;
//   - after a rest: nobody calls for three seconds, and the first who does is refused by
//     chance, which is no silence of the vendor's.
func restings() []resting {
	return []resting{{"who rests", 1200 * time.Millisecond, 0}, {"after a rest", time.Millisecond, 3 * time.Second}}
}

// run requires that so many are served in a second, in one of some times five seconds.
func (c resting) run(t *testing.T, open func(http.Handler) (*testserver.Server, error), least float64, times int) {
	t.Helper()
	vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(50, time.Second, 5)}, Service: 5 * time.Millisecond}
	server := testserver.Run(t, open, vendor)
	transport := &weir.Transport{Base: server.Transport(), Retry: &backoff.Policy{MaxThrottled: -1}, Logger: slog.New(slog.DiscardHandler)}
	defer transport.Close()
	var served atomic.Int64
	work := func(d time.Duration) (perSecond float64) {
		before, began := served.Load(), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if harness.Sent(ctx, transport, server.URL) {
						served.Add(1)
					} else {
						rest(ctx, c.rest)
					}
				}
			})
		}
		wg.Wait()
		return float64(served.Load()-before) / time.Since(began).Seconds()
	}
	learning := work(6 * time.Second)
	if c.idle > 0 {
		time.Sleep(c.idle)
		var refused atomic.Bool
		vendor.SetFaults(testserver.Fault{Match: func(*http.Request) bool { return refused.CompareAndSwap(false, true) }})
	}
	var got float64
	for range times {
		got = work(5 * time.Second)
		t.Logf("%s: %.1f/s at first, then %.1f/s", c.name, learning, got)
		if got >= least {
			return
		}
	}
	t.Errorf("%s: of a hidden 50/s %.1f/s were served, want %.0f/s", c.name, got, least)
}

// rest waits, or until the context ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Twenty calls a second, each of which has ten seconds: a pause of one second
// makes none of them late.
func TestRefusalFailsNoPatientCall(t *testing.T) {
	t.Parallel()
	r := &recovering{recovery: recovery{status: 429, header: harness.Hints("1")}}
	server := testserver.Run(t, testserver.Listen, r)
	transport := &weir.Transport{Base: server.Transport(), Logger: slog.New(slog.DiscardHandler)}
	defer transport.Close()
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	r.refuse.Store(1)
	var wg sync.WaitGroup
	var failed atomic.Value
	for range 80 {
		wg.Go(func() {
			resp, err := client.Get(server.URL)
			if err != nil {
				failed.Store(fmt.Sprint(err))
				return
			}
			if resp.Body.Close(); resp.StatusCode != 200 {
				failed.Store(resp.Status)
			}
		})
		time.Sleep(50 * time.Millisecond)
	}
	wg.Wait()
	if f := failed.Load(); f != nil {
		t.Errorf("a call of 80 failed: %v", f)
	}
}

// A lane that is closed for a day serves again when an operator opens it.
func TestResumedLaneServesAgain(t *testing.T) {
	t.Parallel()
	for _, limits := range [][]throttle.Limit{nil, {throttle.TokenBucket(100, time.Second, 10)}} {
		r := &recovering{recovery: recovery{status: 429, header: harness.Hints("86400")}}
		server := testserver.Run(t, testserver.Listen, r)
		transport := &weir.Transport{Base: server.Transport(), Limits: limits, Logger: slog.New(slog.DiscardHandler)}
		defer transport.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for ctx.Err() == nil {
					send(ctx, transport, server.URL)
				}
			})
		}
		for r.served.Load() < 32 {
			r.within(10 * time.Millisecond)
		}
		r.refuse.Store(1)
		for transport.Snapshot()[0].Paused == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		closed := int64(1)
		for landed := time.Now().Add(10 * time.Second); closed > 0 && time.Now().Before(landed); {
			closed = r.within(500 * time.Millisecond) // those in flight land
		}
		if closed != 0 {
			t.Errorf("limits %v: %d served while the lane is closed", limits, closed)
		}
		if err := transport.Resume(transport.Snapshot()[0].Key); err != nil {
			t.Errorf("Resume = %v", err)
		}
		served := int64(0)
		for again := time.Now().Add(10 * time.Second); served < 20 && time.Now().Before(again); {
			served = r.within(time.Second)
		}
		if served < 20 {
			t.Errorf("limits %v: %d served in a second after Resume, want 20 or more", limits, served)
		}
		cancel()
		wg.Wait()
	}
}

// Workers far beyond the calls in flight that the server bears are all served, and
// none is refused: over real sockets, in real time.
func TestBoundedFlightsServeEverybody(t *testing.T) {
	const calls, workers, most = 600, 64, 8
	r := harness.SocketRig(t, &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(most)}, Service: 5 * time.Millisecond},
		&weir.Transport{InFlight: weir.InFlight{Max: most}})
	var next atomic.Int64
	var line sync.WaitGroup
	began := time.Now()
	for range workers {
		line.Go(func() {
			for next.Add(1) <= calls {
				r.Want("GET", r.Get(t.Context(), ""), 200)
			}
		})
	}
	line.Wait()
	arrivals := r.Vendor.Arrivals()
	if took := time.Since(began); took > 20*time.Second || len(arrivals.Granted()) != calls || len(arrivals) != calls {
		t.Errorf("%d of %d arrivals were served in %v, want %d of %d, within 20 s; the ideal is 0.4 s", len(arrivals.Granted()), len(arrivals), took, calls, calls)
	}
}

// A route is paused while its calls and others stand in the line of their lane, which calls in
// flight hold. All are served, over real sockets, in real time.
func TestLineGoesOnWhenRouteIsPaused(t *testing.T) {
	const calls, workers, most = 300, 32, 2
	r := harness.SocketRig(t, &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(40, 40, "1")}, Service: 5 * time.Millisecond},
		&weir.Transport{InFlight: weir.InFlight{Max: most}, Dialect: harness.ScopedBy(headers.ScopeRoute)})
	var next atomic.Int64
	var line sync.WaitGroup
	began := time.Now()
	for i := range workers {
		line.Go(func() {
			for next.Add(1) <= calls {
				r.Want("GET", r.Do(r.Path([]string{"/a", "/b"}[i%2])), 200)
			}
		})
	}
	line.Wait()
	if took, n := time.Since(began), len(r.Vendor.Arrivals()); took > 20*time.Second || n != calls+1 {
		t.Errorf("%d arrivals in %v, want %d within 20 s; the ideal is 1.8 s", n, took, calls+1)
	}
}

// Others fill the places that a vendor reports, for a second, and leave: the lane is served
// as before within a few seconds, over real sockets, in real time.
func TestPlacesInFlightThatOthersLeaveAreUsedAgain(t *testing.T) {
	t.Parallel()
	vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(12)}, Styles: []testserver.Style{testserver.RateLimit}, Service: 100 * time.Millisecond}
	server := testserver.Run(t, testserver.Listen, vendor)
	transport := &weir.Transport{Base: server.Transport(), Logger: slog.New(slog.DiscardHandler)}
	defer transport.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var served atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if harness.Sent(ctx, transport, server.URL) {
					served.Add(1)
				}
			}
		})
	}
	within := func(d time.Duration) int64 {
		before := served.Load()
		time.Sleep(d)
		return served.Load() - before
	}
	within(time.Second)
	usual := within(time.Second)
	others, leave := context.WithTimeout(ctx, time.Second)
	var crowd sync.WaitGroup
	for range 24 {
		crowd.Go(func() {
			for others.Err() == nil {
				req, _ := http.NewRequestWithContext(others, http.MethodGet, server.URL, nil)
				if resp, err := server.Transport().RoundTrip(req); err == nil {
					_ = resp.Body.Close()
				}
				rest(others, time.Millisecond)
			}
		})
	}
	crowd.Wait()
	leave()
	again := int64(0)
	for range 10 {
		if again = within(time.Second); again > usual*4/5 {
			break
		}
	}
	learned := transport.Snapshot()[0].Learned
	cancel()
	wg.Wait()
	if again <= usual*4/5 {
		t.Errorf("%d in the tenth second after others left, %d in one before they came: %+v", again, usual, learned)
	}
	if learned.Rate != 0 {
		t.Errorf("%+v is learned of a vendor that says it counts calls in flight", learned)
	}
}

// Slow answers say how many places in flight are free. None left is not a quota that is spent: the lane
// goes on, over real sockets, in real time.
func TestSlowPlacesThatAreReportedAreUsed(t *testing.T) {
	t.Parallel()
	const places, slow, whole, last = 5, 2 * time.Second, 21 * time.Second, 10 * time.Second
	vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(places)}, Styles: []testserver.Style{testserver.Heroku}, Service: slow}
	server := testserver.Run(t, testserver.Listen, vendor)
	transport := &weir.Transport{Base: server.Transport(), Logger: slog.New(slog.DiscardHandler)}
	served := servedLast(t, vendor, transport, server.URL, 16, whole, last)
	if ideal := places * int(last/slow); served < ideal*3/4 {
		t.Errorf("%d calls in the last %v, want three quarters of the ideal %d at least", served, last, ideal)
	}
}

// A vendor that reports a quota is down for the four seconds of its Retry-After: the lane then goes on as
// fast as before, over real sockets, in real time.
func TestReportedBucketIsUsedAfterAnOutage(t *testing.T) {
	t.Parallel()
	const rate, whole, last = 20, 18 * time.Second, 4 * time.Second
	vendor := &testserver.Vendor{
		Limits: []testserver.Limit{testserver.TokenBucket(rate, time.Second, rate)}, Service: 20 * time.Millisecond,
		Styles: []testserver.Style{testserver.Heroku}, Faults: []testserver.Fault{harness.Refuse(180, 180, "4")},
	}
	server := testserver.Run(t, testserver.Listen, vendor)
	transport := &weir.Transport{Base: server.Transport(), Logger: slog.New(slog.DiscardHandler)}
	served := servedLast(t, vendor, transport, server.URL, 16, whole, last)
	if most := int(rate * last.Seconds()); served < most*4/5 {
		t.Errorf("%d calls in the last %v, want four fifths of %d at least", served, last, most)
	}
}

// Answers take two seconds, as those of language models do. Calls in flight are no silence of the callers, so each
// refusal shows the limit, and a probe that was not refused at once has passed: over sockets, in real time.
func TestLimitOfSlowAnswersIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("nearly a minute, for which CI has no time under the race detector: its tests without -short run it")
	}
	t.Parallel()
	for _, c := range []struct {
		rate, burst, workers int
		styles               []testserver.Style
		whole, last          time.Duration
	}{
		{4, 3, 16, []testserver.Style{testserver.RetryAfterSeconds}, 54 * time.Second, 18 * time.Second},
		{20, 5, 80, nil, 30 * time.Second, 15 * time.Second},
	} {
		t.Run(strconv.Itoa(c.rate), func(t *testing.T) {
			t.Parallel()
			vendor := &testserver.Vendor{
				Limits: []testserver.Limit{testserver.TokenBucket(c.rate, time.Second, c.burst)}, Styles: c.styles,
				Service: 2 * time.Second, Spread: 500 * time.Millisecond,
			}
			server := testserver.Run(t, testserver.Listen, vendor)
			transport := &weir.Transport{Base: server.Transport(), Logger: slog.New(slog.DiscardHandler)}
			served := servedLast(t, vendor, transport, server.URL, c.workers, c.whole, c.last)
			if most := int(float64(c.rate) * c.last.Seconds()); served < most*3/4 {
				t.Errorf("%d calls in the last %v, want three quarters of %d at least", served, c.last, most)
			}
		})
	}
}

// A limit in tokens says nothing of how many calls a second are served: that is learned from refusals, which then
// become few. Over sockets, in real time.
func TestRateBesideALimitInTokensIsFound(t *testing.T) {
	t.Parallel()
	const rate, whole, last = 20, 10 * time.Second, 5 * time.Second
	vendor := &testserver.Vendor{
		Limits: []testserver.Limit{testserver.TokenBucket(rate, time.Second, 5)}, Styles: []testserver.Style{testserver.RetryAfterMillis}, Service: 20 * time.Millisecond,
	}
	server := testserver.Run(t, testserver.Listen, vendor)
	transport := &weir.Transport{
		Base: server.Transport(), Logger: slog.New(slog.DiscardHandler), Limits: []throttle.Limit{throttle.TokenBucket(1e6, time.Minute, 1e6).Of("tokens")},
		Cost: func(*http.Request, throttle.Limit) int { return 10 },
	}
	served := servedLast(t, vendor, transport, server.URL, 16, whole, last)
	refused := len(vendor.Arrivals().Filter(func(a testserver.Arrival) bool { return !a.Granted && a.At > whole-last }))
	if most := int(rate * last.Seconds()); served < most*3/4 || refused > most/4 {
		t.Errorf("in the last %v %d calls were served and %d refused, want three quarters of %d at least, and a quarter at most", last, served, refused, most)
	}
}

// servedLast has workers send for a time, and returns how many calls were served in the last part of it.
func servedLast(t *testing.T, vendor *testserver.Vendor, transport *weir.Transport, url string, count int, whole, last time.Duration) int {
	t.Helper()
	defer transport.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for range count {
		workers.Go(func() {
			for ctx.Err() == nil {
				harness.Sent(ctx, transport, url)
			}
		})
	}
	time.Sleep(whole)
	cancel()
	workers.Wait()
	return len(vendor.Arrivals().Granted().Filter(func(a testserver.Arrival) bool { return a.At > whole-last }))
}

// Windows that run out hold a lane that waits for resets, and it serves on in the next
// one, without one refusal: over real sockets, in real time. It begins when the first
// reset is far enough away to be exact.
func TestResetIsWaitedForAndServedAfter(t *testing.T) {
	t.Parallel()
	const calls, workers, window = 50, 16, 6 * time.Second
	if left := window - time.Duration(time.Now().UnixNano())%window; left < 4*time.Second {
		time.Sleep(left)
	}
	r := harness.SocketRig(t, &testserver.Vendor{
		Limits: []testserver.Limit{testserver.FixedWindow(30, window)},
		Styles: []testserver.Style{testserver.XRateLimitEpoch},
	}, &weir.Transport{WaitForReset: true})
	r.Transport.Learn = weir.LearnOn
	var next atomic.Int64
	var line sync.WaitGroup
	began := time.Now()
	for range workers {
		line.Go(func() {
			for next.Add(1) <= calls {
				r.Want("GET", r.Get(t.Context(), ""), 200)
			}
		})
	}
	line.Wait()
	if took, refused := time.Since(began), r.Vendor.Arrivals().Count(http.StatusTooManyRequests); took > 40*time.Second || refused > 0 {
		t.Errorf("%d calls at 30 in %v took %v, %d were refused, want 40s at most, 0", calls, window, took, refused)
	}
}

// A log gives each permit back a period after it was spent, and reports only what is left. A lane
// of which nothing is configured is served on when the log is empty. The ideal is 10 s. Over real
// sockets a busy machine delays calls, which meet permits that are spent in their stead.
func TestLogIsUsedAsItGivesBack(t *testing.T) {
	t.Parallel()
	took, refused := useLog(t, harness.SocketRig)
	if took > 40*time.Second || refused > logCalls/8 {
		t.Errorf("%d calls took %v, %d were refused, want 40 s at most, %d", logCalls, took, refused, logCalls/8)
	}
}

// In exact time four tenths of a call are refused on average, and in some runs ten.
func TestLogIsUsedAsItGivesBackInABubble(t *testing.T) {
	const runs = 100
	var refused int
	for range runs {
		synctest.Test(t, func(t *testing.T) {
			took, n := useLog(t, harness.PipeRig)
			refused += n
			if took > 20*time.Second {
				t.Errorf("%d calls took %v, want 20 s at most", logCalls, took)
			}
		})
	}
	t.Logf("%d of %d calls were refused", refused, runs*logCalls)
	if refused > runs {
		t.Errorf("in %d runs %d calls were refused, want one in each at most", runs, refused)
	}
}

// logCalls is how many calls useLog makes.
const logCalls = 160

// useLog makes calls of a vendor with a log, and returns how long they took and how many
// were refused.
func useLog(t *testing.T, open func(*testing.T, *testserver.Vendor, *weir.Transport) *harness.Rig) (took time.Duration, refused int) {
	t.Helper()
	const workers, permits, period = 4, 30, 2 * time.Second
	r := open(t, &testserver.Vendor{
		Limits: []testserver.Limit{testserver.SlidingLog(permits, period)}, Styles: []testserver.Style{testserver.Heroku}, Service: 10 * time.Millisecond,
	}, &weir.Transport{})
	r.Transport.Learn = weir.LearnOn
	var next atomic.Int64
	var line sync.WaitGroup
	began := time.Now()
	for range workers {
		line.Go(func() {
			for next.Add(1) <= logCalls {
				r.Want("GET", r.Get(t.Context(), ""), 200)
			}
		})
	}
	line.Wait()
	return time.Since(began), r.Vendor.Arrivals().Count(http.StatusTooManyRequests)
}

// An urgent call overtakes the line, and Shutdown lets those in line have their
// answers: over real sockets, in real time.
func TestUrgentCallGoesNextAndShutdownServesTheRest(t *testing.T) {
	t.Parallel()
	const bulk = 60
	r := harness.SocketRig(t, &testserver.Vendor{}, &weir.Transport{Limits: []throttle.Limit{throttle.LeakyBucket(30, time.Second)}, InFlight: weir.InFlight{Max: 4}})
	var line sync.WaitGroup
	var answered atomic.Int64
	for range bulk {
		line.Go(func() {
			r.Want("bulk", r.Get(t.Context(), "bulk"), 200)
			answered.Add(1)
		})
	}
	for entered := 0; entered < bulk; time.Sleep(time.Millisecond) {
		for _, lane := range r.Transport.Snapshot() {
			entered = lane.Requests + int(answered.Load())
		}
	}
	r.Want("urgent", r.Get(weir.WithPriority(t.Context(), weir.PriorityHigh), "urgent"), 200)
	if n := len(r.Vendor.Arrivals()); n > bulk*3/4 {
		t.Errorf("the urgent call was answered after %d of %d arrivals", n, bulk+1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := r.Transport.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
	line.Wait()
	if n := len(r.Vendor.Arrivals().Granted()); n != bulk+1 {
		t.Errorf("%d calls were served, want %d", n, bulk+1)
	}
}

// Four vendors bound the calls in flight and say nothing. A lane of which nothing is
// configured uses each, after a second, at least three quarters as much as one with the
// bound configured uses a fifth one beside them. A lane that took the bound for a rate, as
// three of five did, had half of it. It takes three seconds. If the machine stops, a lane may do
// so by chance, so one of five times counts.
func TestHiddenPlacesAreFoundOverSockets(t *testing.T) {
	for range 5 {
		served := hiddenPlaces(t)
		t.Logf("served %d with nothing configured, %d with the bound", served[1:], served[0])
		if slices.Min(served[1:]) >= served[0]*3/4 {
			return
		}
	}
	t.Error("a lane with nothing configured has less than three quarters of one with the bound")
}

// hiddenPlaces returns how many calls lanes make at vendors that bound the calls in flight. The
// first lane has the bound configured.
func hiddenPlaces(t *testing.T) []int {
	t.Helper()
	const places, workers, before, until = 8, 64, time.Second, 3 * time.Second
	served := make([]int, 5)
	var all sync.WaitGroup
	for i := range served {
		vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(places)}, Service: 40 * time.Millisecond}
		server := testserver.Run(t, testserver.Listen, vendor)
		transport := &weir.Transport{Base: server.Transport(), Logger: slog.New(slog.DiscardHandler)}
		if i == 0 {
			transport.InFlight.Max = places
		}
		all.Go(func() {
			defer transport.Close()
			ctx, cancel := context.WithTimeout(t.Context(), until)
			defer cancel()
			vendor.Start()
			var callers sync.WaitGroup
			for range workers {
				callers.Go(func() {
					for ctx.Err() == nil {
						send(ctx, transport, server.URL)
					}
				})
			}
			callers.Wait()
			served[i] = len(vendor.Arrivals().Granted().Filter(func(a testserver.Arrival) bool { return a.At > before }))
		})
	}
	all.Wait()
	return served
}

// Callers that wait at a slow limit are served soon after a configuration with a fast one.
func TestAppliedLimitsServeThoseWhoWait(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	transport := new(weir.Transport)
	slow := weir.Config{Routes: []weir.RouteConfig{{Match: "/", Limits: []throttle.Limit{throttle.TokenBucket(1, time.Minute, 1)}}}}
	if err := transport.Apply(slow); err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context()) // with a deadline, none would begin to wait
	defer cancel()
	time.AfterFunc(20*time.Second, cancel)
	var served atomic.Int64
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/", http.NoBody)
			resp, err := transport.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
				served.Add(1)
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	fast := weir.Config{Routes: []weir.RouteConfig{{Match: "/", Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 10)}}}}
	if err := transport.Apply(fast); err != nil {
		t.Error(err)
	}
	all.Wait()
	if served.Load() != 40 {
		t.Errorf("%d of 40 calls were served within 20 s, want all", served.Load())
	}
}
