package weir_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// An allowed instrument, with the values that its attributes may have; weir.lane
// may have any, and stands beside them unless it is of calls to the store.
type allowed struct {
	unit, kind string
	attributes map[string]string // words
}

var instruments = map[string]allowed{
	"weir.admissions":     {"{request}", "counter", map[string]string{"weir.result": results, "weir.store": "local shared fallback"}},
	"weir.wait.duration":  {"s", "histogram", map[string]string{"weir.result": results, "weir.wait.reason": "rate pause concurrency store"}},
	"weir.queue.depth":    {"{request}", "updown", nil},
	"weir.keys.active":    {"{key}", "updown", nil},
	"weir.limit.headroom": {"1", "gauge", map[string]string{"weir.source": "local"}},
	"weir.limit.rate":     {"{request}/s", "gauge", map[string]string{"weir.limit.kind": "configured learned"}},
	"weir.responses.throttled": {"{response}", "counter", map[string]string{
		"http.response.status_code": "403 429 503", "weir.hint": "retry_after ratelimit none invalid"}},
	"weir.pause.duration": {"s", "histogram", map[string]string{"weir.clamped": "true false"}},
	"weir.retries": {"{retry}", "counter", map[string]string{
		"error.type":         "2xx 3xx 4xx 5xx timeout _OTHER",
		"weir.retry.outcome": "retried attempts max_throttled deadline budget method body"}},
	"weir.store.fallback.active": {"{lane}", "updown", nil},
	"weir.store.takes.unknown":   {"{request}", "counter", nil},
	"weir.store.permits.void":    {"{permit}", "counter", nil},
	"weir.store.operation.duration": {"s", "histogram", map[string]string{
		"weir.store.operation": "reserve tell probe lease subscribe", "error.type": causes}},
}

// causes are why a call to the store fails.
const causes = "timeout reply refused reset network other noscript loading readonly oom busy noperm auth channel wrongtype cluster masterdown noreplicas misconf"

const results = "admitted rejected canceled expired closed"

func TestMetricsAreAllowed(t *testing.T) {
	_, _, points := sinks(t)
	seen := make(map[string]bool)
	for _, p := range append(points, lossy(t)...) {
		seen[p.name] = true
		want, ok := instruments[p.name]
		if !ok || p.unit != want.unit || p.kind != want.kind {
			t.Errorf("%s = %s of %s, want %+v", p.name, p.kind, p.unit, want)
		}
		if lane, ok := p.attributes["weir.lane"]; ok == (p.name == "weir.store.operation.duration") || ok && lane == "" || len(lane) > 128 {
			t.Errorf("weir.lane of %s = %q, want a name", p.name, lane)
		}
		for key, value := range p.attributes {
			if words, ok := want.attributes[key]; key != "weir.lane" && (!ok || !slices.Contains(strings.Fields(words), value)) {
				t.Errorf("%s of %s = %q, want one of %q", key, p.name, value, words)
			}
		}
		for key := range want.attributes {
			optional := key == "http.response.status_code" || want.attributes["weir.store.operation"] != "" && key == "error.type"
			if _, ok := p.attributes[key]; !ok && !optional {
				t.Errorf("%s of %s is missing", key, p.name)
			}
		}
	}
	for name := range instruments {
		if !seen[name] {
			t.Errorf("%s was never exported", name)
		}
	}
}

// lossy returns what is exported of a lane of whose permits one is void, and whose
// store does not answer then.
func lossy(t *testing.T) (points []point) {
	synctest.Test(t, func(t *testing.T) {
		log := newMeterLog()
		f := newFleet(t, 1, &testserver.Vendor{}, every(time.Second)...)
		r := f.replicas[0]
		r.transport.MeterProvider = log
		ctx, cancel := context.WithCancel(t.Context())
		waiting := r.callers(ctx, 2)
		time.Sleep(100 * time.Millisecond)
		cancel() // the second holds a permit for the next second
		waiting.wait()
		time.Sleep(2 * time.Second)
		f.redis.Break(redispipe.Silent)
		r.get(weir.WithMaxWait(t.Context(), time.Second), "a")
		points = log.points(t)
	})
	return points
}

// What is counted is what the vendor counts, whatever it answers.
func TestMetricsAgreeWithVendor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMeterLog()
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				answered(3, testserver.Fault{Header: hints("2")}),
				answered(5, testserver.Fault{Status: 500}),
				answered(8, testserver.Fault{Status: 503}),
				answered(11, testserver.Fault{Header: hints("soon")}),
				answered(14, testserver.Fault{Status: 503, Header: hints("1")}),
				answered(30, testserver.Fault{Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}}}),
			}},
			&weir.Transport{MeterProvider: log, Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 3)}, Retry: after(time.Second)})
		const requests = 30
		for _, got := range r.callers(t.Context(), requests).wait() {
			r.want("GET", got, 200)
		}
		arrivals, points := r.vendor.Arrivals(), log.points(t)
		count := func(status int) float64 { return float64(arrivals.Count(status)) }
		wantSum(t, points, float64(len(arrivals)), "weir.admissions")
		wantSum(t, points, float64(len(arrivals)), "weir.admissions", "weir.lane=vendor.test", "weir.result=admitted", "weir.store=local")
		wantSum(t, points, float64(len(arrivals)-requests), "weir.retries", "weir.retry.outcome=retried")
		wantSum(t, points, count(429), "weir.retries", "error.type=4xx")
		wantSum(t, points, count(500)+count(503), "weir.retries", "error.type=5xx")
		wantSum(t, points, count(429), "weir.responses.throttled", "http.response.status_code=429")
		wantSum(t, points, 1, "weir.responses.throttled", "http.response.status_code=503", "weir.hint=retry_after")
		wantSum(t, points, 1, "weir.responses.throttled", "http.response.status_code=429", "weir.hint=retry_after")
		wantSum(t, points, 1, "weir.responses.throttled", "weir.hint=ratelimit")
		wantSum(t, points, 1, "weir.responses.throttled", "weir.hint=invalid")
		wantSum(t, points, 2+1+1, "weir.pause.duration", "weir.clamped=false")
		wantCount(t, points, 3, "weir.pause.duration")
	})
}

func TestTurnsAreCountedByResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMeterLog()
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{MeterProvider: log, Limits: []throttle.Limit{throttle.TokenBucket(1, 10*time.Second, 1)}, Line: weir.Line{MaxWaiting: 2}})
		r.spend()
		r.get(weir.WithMaxWait(t.Context(), time.Second), "would wait too long")
		r.get(weir.WithCost(t.Context(), 2), "oversized")
		gone, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		r.get(gone, "came too late")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		waiting := r.callers(ctx, 2)
		r.get(t.Context(), "beyond MaxWaiting")
		points := log.points(t)
		wantSum(t, points, 2, "weir.queue.depth", "weir.lane=vendor.test")
		wantSum(t, points, 1, "weir.keys.active", "weir.lane=vendor.test")
		wantSum(t, points, 0, "weir.limit.headroom", "weir.lane=vendor.test")
		waiting.wait()
		patient := r.start("patient")
		time.Sleep(2 * time.Second) // at 5s
		points = log.points(t)
		wantSum(t, points, 0.5, "weir.limit.headroom", "weir.lane=vendor.test")
		<-patient // until 10s
		closing := r.start("closing")
		time.Sleep(time.Second)
		r.transport.Close()
		<-closing
		points = log.points(t)
		for result, n := range map[string]float64{"admitted": 2, "rejected": 3, "expired": 1, "canceled": 2, "closed": 1} {
			wantSum(t, points, n, "weir.admissions", "weir.result="+result)
		}
		for result, n := range map[string]uint64{"admitted": 1, "canceled": 2, "closed": 1} {
			wantCount(t, points, n, "weir.wait.duration", "weir.result="+result, "weir.wait.reason=rate")
		}
		wantSum(t, points, 3+3+7+1, "weir.wait.duration")
		wantCount(t, points, 4, "weir.wait.duration")
	})
}

func TestWaitThatExpiresInLineIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMeterLog()
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{MeterProvider: log,
			Store: storeFunc(func(string, ...throttle.Limit) (throttle.Limiter, error) { return once(), nil })})
		r.spend()
		r.get(weir.WithMaxWait(t.Context(), time.Second), "expires")
		points := log.points(t)
		wantSum(t, points, 1, "weir.admissions", "weir.result=expired")
		wantSum(t, points, 1, "weir.wait.duration", "weir.result=expired")
	})
}

func TestRetriesAreCountedByOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMeterLog()
		retry := after(time.Second)
		retry.Attempts, retry.MaxThrottled, retry.BudgetShare, retry.BudgetPerSecond = 2, 1, -1, 0.1 // one retry in ten seconds
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 5, Do: testserver.Answer, Status: 500}, {First: 6, Do: testserver.Answer, Header: hints("1")}}},
			&weir.Transport{MeterProvider: log, Retry: retry})
		get := func(ctx context.Context, id string) answer { // calls of one URL would be tries of one call
			req := r.request(ctx, id)
			req.URL.RawQuery = id
			return r.do(req)
		}
		r.want("GET", get(t.Context(), "attempts"), 500) // 1, 2
		r.want("GET", get(t.Context(), "budget"), 500)   // 3
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.want("GET", get(soon, "deadline"), 500) // 4
		post := r.request(t.Context(), "method")
		post.Method = http.MethodPost
		r.want("POST", r.do(post), 500)                       // 5
		r.want("GET", get(t.Context(), "max_throttled"), 429) // 6, 7
		points := log.points(t)
		for _, outcome := range []string{"attempts", "budget", "deadline", "method"} {
			wantSum(t, points, 1, "weir.retries", "error.type=5xx", "weir.retry.outcome="+outcome)
		}
		wantSum(t, points, 1, "weir.retries", "error.type=5xx", "weir.retry.outcome=retried")
		wantSum(t, points, 1, "weir.retries", "error.type=4xx", "weir.retry.outcome=retried")
		wantSum(t, points, 1, "weir.retries", "error.type=4xx", "weir.retry.outcome=max_throttled")
		wantSum(t, points, 7, "weir.retries")
	})
}

func TestPauseBeyondAnHourIsCountedClamped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMeterLog()
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: hints("7200")}}}, &weir.Transport{MeterProvider: log})
		r.want("GET", r.get(t.Context(), "a"), 429)
		wantSum(t, log.points(t), 3600, "weir.pause.duration", "weir.clamped=true")
	})
}

// A metered transport counts what happens in many lanes, and the metrics stay
// few.
func TestMetricsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 10_000
		log := newMeterLog()
		transport := &weir.Transport{
			Base: stub{}, MeterProvider: log, Logger: slog.New(slog.DiscardHandler),
			Limits:   []throttle.Limit{throttle.TokenBucket(1, time.Hour, 1)},
			Key:      func(req *http.Request) string { return req.URL.Host },
			MaxLanes: 2 * keys, Retry: backoff.None, UnguardedResends: true,
		}
		defer transport.Close()
		get := func(ctx context.Context, key string) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+key, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if resp, err := transport.RoundTrip(req); err == nil {
				resp.Body.Close()
			}
		}
		gone, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		for i := range keys {
			key := "account-" + strconv.Itoa(i)
			get(t.Context(), key)                                // admitted
			get(weir.WithMaxWait(t.Context(), time.Second), key) // rejected
			get(gone, key)                                       // expired
			waiting, cancel := context.WithCancel(context.Background())
			go get(waiting, key)
			synctest.Wait()
			cancel() // canceled
		}
		synctest.Wait()
		points := log.points(t)
		series, lanes := make(map[string]int), make(map[string]map[string]bool)
		for _, p := range points {
			series[p.name]++
			if lanes[p.name] == nil {
				lanes[p.name] = make(map[string]bool)
			}
			lanes[p.name][p.attributes["weir.lane"]] = true
		}
		for name, n := range series {
			if n > 200 || len(lanes[name]) > 51 || !lanes[name]["other"] {
				t.Errorf("%s has %d series of %d lanes, want 200 of 51 at most, and others", name, n, len(lanes[name]))
			}
		}
		for _, result := range []string{"admitted", "rejected", "expired", "canceled"} {
			wantSum(t, points, keys, "weir.admissions", "weir.result="+result)
		}
		wantSum(t, points, keys, "weir.keys.active")
		wantSum(t, points, keys-50, "weir.keys.active", "weir.lane=other")
	})
}

// What cannot be text to an exporter is left out of a lane's name: it would drop
// all of a batch.
func TestLaneOfMetricsIsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMeterLog()
		keys := []string{"a\xff", "\xff", ""}
		next := 0
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{MeterProvider: log, Key: func(*http.Request) string { next++; return keys[next-1] }})
		for range keys {
			r.get(t.Context(), "a")
		}
		points := log.points(t)
		wantSum(t, points, 1, "weir.admissions", "weir.lane=a")
		wantSum(t, points, 2, "weir.admissions", "weir.lane=other")
	})
}

func TestMetricsTellOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMeterLog()
		f := newFleet(t, 1, &testserver.Vendor{}, throttle.TokenBucket(10, time.Second, 1))
		r := f.replicas[0]
		r.transport.MeterProvider = log
		r.want("GET", r.get(t.Context(), "a"), 200)
		points := log.points(t)
		wantSum(t, points, 0, "weir.store.fallback.active", "weir.lane=vendor.test")
		wantSum(t, points, 1, "weir.admissions", "weir.store=shared")
		wantCount(t, points, 1, "weir.wait.duration", "weir.wait.reason=store")
		if s := r.transport.Snapshot()[0].Store; s == nil || s.Lost || s.Calls != 1 || s.Replicas != 1 {
			t.Errorf("Store = %+v, want one call and one replica", s)
		}

		f.redis.Break(redispipe.Silent)
		waiting := r.callers(t.Context(), 3)
		time.Sleep(time.Second)
		points = log.points(t)
		wantSum(t, points, 1, "weir.store.fallback.active", "weir.lane=vendor.test")
		unknown := float64(r.transport.Snapshot()[0].Store.Unknown)
		wantSum(t, points, unknown, "weir.store.takes.unknown", "weir.lane=vendor.test")
		if s := r.transport.Snapshot()[0].Store; !s.Lost || s.Cause != "timeout" || unknown != 1 {
			t.Errorf("Store = %+v, want it lost for a timeout, and a permit with it", s)
		}
		r.want("GET", r.get(t.Context(), "a"), 200)
		r.get(weir.WithMaxWait(t.Context(), time.Millisecond), "expires")
		wantSum(t, log.points(t), 1, "weir.admissions", "weir.store=fallback", "weir.result=expired")

		f.redis.Break(redispipe.Healthy)
		for _, got := range waiting.wait() {
			r.want("GET", got, 200)
		}
		time.Sleep(2 * time.Second) // a probe finds the store
		r.want("GET", r.get(t.Context(), "a"), 200)
		points = log.points(t)
		wantSum(t, points, 0, "weir.store.fallback.active", "weir.lane=vendor.test")
		wantSum(t, points, 2, "weir.admissions", "weir.store=shared", "weir.result=admitted")
		wantSum(t, points, 4, "weir.admissions", "weir.store=fallback", "weir.result=admitted")
		unknown = float64(r.transport.Snapshot()[0].Store.Unknown)

		// What was counted of a lane stays when it has gone.
		r.transport.Close()
		wantSum(t, log.points(t), unknown, "weir.store.takes.unknown")
		for _, p := range log.points(t) {
			if p.kind == "updown" || p.kind == "gauge" {
				t.Errorf("%s%v is told of a transport that is closed", p.name, p.attributes)
			}
		}
	})
}

// What is lost between two collections is counted also of a lane that has gone
// meanwhile, and a lane that has gone is told as empty.
func TestMetricsOfLanesThatWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newMeterLog()
		lost := &loser{Limiter: free()}
		keys := []string{"a", "b"}
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{
			MeterProvider: log, MaxLanes: 1, Key: func(req *http.Request) string { return keys[0] },
			Store: storeFunc(func(key string, _ ...throttle.Limit) (throttle.Limiter, error) {
				if key == "a" {
					return lost, nil
				}
				return throttle.Local{}.Limiter(key)
			}),
		})
		r.want("GET", r.get(t.Context(), "a"), 200)
		wantSum(t, log.points(t), 1, "weir.keys.active", "weir.lane=a")
		lost.unknown.Add(7)
		lost.void.Add(5)
		keys = keys[1:]
		r.want("GET", r.get(t.Context(), "b"), 200)
		points := log.points(t)
		wantSum(t, points, 7, "weir.store.takes.unknown", "weir.lane=a")
		wantSum(t, points, 5, "weir.store.permits.void", "weir.lane=a")
		wantSum(t, points, 0, "weir.keys.active", "weir.lane=a")
		wantSum(t, points, 1, "weir.keys.active", "weir.lane=b")
		for range 2 {
			wantSum(t, log.points(t), 7, "weir.store.takes.unknown")
			wantSum(t, log.points(t), 5, "weir.store.permits.void")
		}
	})
}

// A loser lets everything pass and tells of permits lost in its store and void.
type loser struct {
	throttle.Limiter
	unknown, void atomic.Uint64
}

func (l *loser) State(throttle.Instant) throttle.State {
	return throttle.State{Whole: true, Store: &throttle.StoreState{Unknown: l.unknown.Load(), Void: l.void.Load()}}
}
