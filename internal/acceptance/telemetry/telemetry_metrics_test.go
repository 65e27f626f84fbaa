package telemetry_test

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
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// An allowed is an instrument, with the values that its attributes may have. weir.lane may have any
// value; instruments of calls to the store lack it.
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
	"weir.queue.limit":           {"{request}", "updown", nil},
	"weir.shadow.decisions":      {"{decision}", "counter", map[string]string{"weir.shadow.live": outcomes, "weir.shadow.candidate": outcomes}},
	"weir.store.limits.differ":   {"{lane}", "updown", nil},
	"weir.store.strayed":         {"{event}", "counter", map[string]string{"weir.store.event": "limits_differ limits_agree state_lost state_foreign clock_stepped permits_void"}},
	"weir.store.takes.unknown":   {"{request}", "counter", nil},
	"weir.store.permits.void":    {"{permit}", "counter", nil},
	"weir.store.operation.duration": {"s", "histogram", map[string]string{
		"weir.store.operation": "reserve tell probe lease subscribe", "error.type": causes}},
}

// causes are why a call to the store fails.
const causes = "timeout reply refused reset network other noscript loading readonly oom busy noperm auth channel wrongtype cluster masterdown noreplicas misconf"

const results = "admitted rejected canceled expired closed"

const outcomes = "admitted held rejected"

func TestMetricsAreAllowed(t *testing.T) {
	_, _, points := sinks(t)
	seen := make(map[string]bool)
	for _, p := range append(points, lossy(t)...) {
		seen[p.Name] = true
		want, ok := instruments[p.Name]
		if !ok || p.Unit != want.unit || p.Kind != want.kind {
			t.Errorf("%s = %s of %s, want %+v", p.Name, p.Kind, p.Unit, want)
		}
		if lane, ok := p.Attributes["weir.lane"]; ok == (p.Name == "weir.store.operation.duration") || ok && lane == "" || len(lane) > 128 {
			t.Errorf("weir.lane of %s = %q, want a name", p.Name, lane)
		}
		for key, value := range p.Attributes {
			if words, ok := want.attributes[key]; key != "weir.lane" && (!ok || !slices.Contains(strings.Fields(words), value)) {
				t.Errorf("%s of %s = %q, want one of %q", key, p.Name, value, words)
			}
		}
		for key := range want.attributes {
			optional := key == "http.response.status_code" || want.attributes["weir.store.operation"] != "" && key == "error.type"
			if _, ok := p.Attributes[key]; !ok && !optional {
				t.Errorf("%s of %s is missing", key, p.Name)
			}
		}
	}
	for name := range instruments {
		if !seen[name] {
			t.Errorf("%s was never exported", name)
		}
	}
}

// lossy returns the export of a lane with one void permit and a store that then stops answering.
func lossy(t *testing.T) (points []harness.Point) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		f := harness.NewFleet(t, 1, &testserver.Vendor{}, harness.Every(time.Second)...)
		r := f.Replicas[0]
		r.Transport.MeterProvider = log
		ctx, cancel := context.WithCancel(t.Context())
		waiting := r.Callers(ctx, 2)
		time.Sleep(100 * time.Millisecond)
		cancel() // the second holds a permit for the next second
		waiting.Wait()
		time.Sleep(2 * time.Second)
		f.Redis.Break(redispipe.Silent)
		r.Get(weir.WithMaxWait(t.Context(), time.Second), "a")
		points = log.Points(t)
	})
	return points
}

// The counts equal the vendor's, whatever it answers.
func TestMetricsAgreeWithVendor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				harness.Answered(3, testserver.Fault{Header: harness.Hints("2")}),
				harness.Answered(5, testserver.Fault{Status: 500}),
				harness.Answered(8, testserver.Fault{Status: 503}),
				harness.Answered(11, testserver.Fault{Header: harness.Hints("soon")}),
				harness.Answered(14, testserver.Fault{Status: 503, Header: harness.Hints("1")}),
				harness.Answered(30, testserver.Fault{Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}}}),
			}},
			&weir.Transport{MeterProvider: log, Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 3)}, Retry: harness.After(time.Second)})
		const requests = 30
		for _, got := range r.Callers(t.Context(), requests).Wait() {
			r.Want("GET", got, 200)
		}
		arrivals, points := r.Vendor.Arrivals(), log.Points(t)
		count := func(status int) float64 { return float64(arrivals.Count(status)) }
		harness.WantSum(t, points, float64(len(arrivals)), "weir.admissions")
		harness.WantSum(t, points, float64(len(arrivals)), "weir.admissions", "weir.lane=vendor.test", "weir.result=admitted", "weir.store=local")
		harness.WantSum(t, points, float64(len(arrivals)-requests), "weir.retries", "weir.retry.outcome=retried")
		harness.WantSum(t, points, count(429), "weir.retries", "error.type=4xx")
		harness.WantSum(t, points, count(500)+count(503), "weir.retries", "error.type=5xx")
		harness.WantSum(t, points, count(429), "weir.responses.throttled", "http.response.status_code=429")
		harness.WantSum(t, points, 1, "weir.responses.throttled", "http.response.status_code=503", "weir.hint=retry_after")
		harness.WantSum(t, points, 1, "weir.responses.throttled", "http.response.status_code=429", "weir.hint=retry_after")
		harness.WantSum(t, points, 1, "weir.responses.throttled", "weir.hint=ratelimit")
		harness.WantSum(t, points, 1, "weir.responses.throttled", "weir.hint=invalid")
		harness.WantSum(t, points, 2+1+1, "weir.pause.duration", "weir.clamped=false")
		harness.WantCount(t, points, 3, "weir.pause.duration")
	})
}

func TestTurnsAreCountedByResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{MeterProvider: log, Limits: []throttle.Limit{throttle.TokenBucket(1, 10*time.Second, 1)}, Line: weir.Line{MaxWaiting: 2}})
		r.Spend()
		r.Get(weir.WithMaxWait(t.Context(), time.Second), "would wait too long")
		r.Get(weir.WithCost(t.Context(), 2), "oversized")
		gone, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		r.Get(gone, "came too late")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		waiting := r.Callers(ctx, 2)
		r.Get(t.Context(), "beyond MaxWaiting")
		points := log.Points(t)
		harness.WantSum(t, points, 2, "weir.queue.depth", "weir.lane=vendor.test")
		harness.WantSum(t, points, 1, "weir.keys.active", "weir.lane=vendor.test")
		harness.WantSum(t, points, 0, "weir.limit.headroom", "weir.lane=vendor.test")
		waiting.Wait()
		patient := r.Start("patient")
		time.Sleep(2 * time.Second) // at 5s
		points = log.Points(t)
		harness.WantSum(t, points, 0.5, "weir.limit.headroom", "weir.lane=vendor.test")
		<-patient // until 10s
		closing := r.Start("closing")
		time.Sleep(time.Second)
		r.Transport.Close()
		<-closing
		points = log.Points(t)
		for result, n := range map[string]float64{"admitted": 2, "rejected": 3, "expired": 1, "canceled": 2, "closed": 1} {
			harness.WantSum(t, points, n, "weir.admissions", "weir.result="+result)
		}
		for result, n := range map[string]uint64{"admitted": 1, "canceled": 2, "closed": 1} {
			harness.WantCount(t, points, n, "weir.wait.duration", "weir.result="+result, "weir.wait.reason=rate")
		}
		harness.WantSum(t, points, 3+3+7+1, "weir.wait.duration")
		harness.WantCount(t, points, 4, "weir.wait.duration")
	})
}

// Shadow decisions are counted as in Snapshot.
func TestShadowDecisionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			MeterProvider: log, Shadow: []throttle.Limit{throttle.TokenBucket(1, time.Hour, 3)}, Line: weir.Line{MaxWaiting: 2},
		})
		for range 6 {
			r.Want("GET", r.Get(t.Context(), "a"), 200)
		}
		points := log.Points(t)
		for candidate, n := range map[string]float64{"admitted": 3, "held": 2, "rejected": 1} {
			harness.WantSum(t, points, n, "weir.shadow.decisions", "weir.lane=vendor.test", "weir.shadow.live=admitted", "weir.shadow.candidate="+candidate)
		}
		harness.WantSum(t, points, 2, "weir.queue.limit", "weir.lane=vendor.test")
	})
}

func TestWaitThatExpiresInLineIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{MeterProvider: log,
			Store: harness.StoreFunc(func(string, ...throttle.Limit) (throttle.Limiter, error) { return harness.Once(), nil })})
		r.Spend()
		r.Get(weir.WithMaxWait(t.Context(), time.Second), "expires")
		points := log.Points(t)
		harness.WantSum(t, points, 1, "weir.admissions", "weir.result=expired")
		harness.WantSum(t, points, 1, "weir.wait.duration", "weir.result=expired")
	})
}

func TestRetriesAreCountedByOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		retry := harness.After(time.Second)
		retry.Attempts, retry.MaxThrottled, retry.BudgetShare, retry.BudgetPerSecond = 2, 1, -1, 0.1 // one retry in ten seconds
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 5, Do: testserver.Answer, Status: 500}, {First: 6, Do: testserver.Answer, Header: harness.Hints("1")}}},
			&weir.Transport{MeterProvider: log, Retry: retry})
		get := func(ctx context.Context, id string) harness.Answer { // calls of one URL would count as tries of one call
			req := r.Request(ctx, id)
			req.URL.RawQuery = id
			return r.Do(req)
		}
		r.Want("GET", get(t.Context(), "attempts"), 500) // 1, 2
		r.Want("GET", get(t.Context(), "budget"), 500)   // 3
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.Want("GET", get(soon, "deadline"), 500) // 4
		post := r.Request(t.Context(), "method")
		post.Method = http.MethodPost
		r.Want("POST", r.Do(post), 500)                       // 5
		r.Want("GET", get(t.Context(), "max_throttled"), 429) // 6, 7
		points := log.Points(t)
		for _, outcome := range []string{"attempts", "budget", "deadline", "method"} {
			harness.WantSum(t, points, 1, "weir.retries", "error.type=5xx", "weir.retry.outcome="+outcome)
		}
		harness.WantSum(t, points, 1, "weir.retries", "error.type=5xx", "weir.retry.outcome=retried")
		harness.WantSum(t, points, 1, "weir.retries", "error.type=4xx", "weir.retry.outcome=retried")
		harness.WantSum(t, points, 1, "weir.retries", "error.type=4xx", "weir.retry.outcome=max_throttled")
		harness.WantSum(t, points, 7, "weir.retries")
	})
}

func TestPauseBeyondAnHourIsCountedClamped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: harness.Hints("7200")}}}, &weir.Transport{MeterProvider: log})
		r.Want("GET", r.Get(t.Context(), "a"), 429)
		harness.WantSum(t, log.Points(t), 3600, "weir.pause.duration", "weir.clamped=true")
	})
}

// A metered transport counts events of many lanes in few metrics.
func TestMetricsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 10_000
		log := harness.NewMeterLog()
		transport := &weir.Transport{
			Base: harness.Stub{}, MeterProvider: log, Logger: slog.New(slog.DiscardHandler),
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
		points := log.Points(t)
		series, lanes := make(map[string]int), make(map[string]map[string]bool)
		for _, p := range points {
			series[p.Name]++
			if lanes[p.Name] == nil {
				lanes[p.Name] = make(map[string]bool)
			}
			lanes[p.Name][p.Attributes["weir.lane"]] = true
		}
		for name, n := range series {
			if n > 200 || len(lanes[name]) > 51 || !lanes[name]["other"] {
				t.Errorf("%s has %d series of %d lanes, want 200 of 51 at most, and others", name, n, len(lanes[name]))
			}
		}
		for _, result := range []string{"admitted", "rejected", "expired", "canceled"} {
			harness.WantSum(t, points, keys, "weir.admissions", "weir.result="+result)
		}
		harness.WantSum(t, points, keys, "weir.keys.active")
		harness.WantSum(t, points, keys-50, "weir.keys.active", "weir.lane=other")
	})
}

// Invalid text is left out of a lane's name: an exporter would drop the whole batch.
func TestLaneOfMetricsIsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		keys := []string{"a\xff", "\xff", ""}
		next := 0
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{MeterProvider: log, Key: func(*http.Request) string { next++; return keys[next-1] }})
		for range keys {
			r.Get(t.Context(), "a")
		}
		points := log.Points(t)
		harness.WantSum(t, points, 1, "weir.admissions", "weir.lane=a")
		harness.WantSum(t, points, 2, "weir.admissions", "weir.lane=other")
	})
}

func TestMetricsShowTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		f := harness.NewFleet(t, 1, &testserver.Vendor{}, throttle.TokenBucket(10, time.Second, 1))
		r := f.Replicas[0]
		r.Transport.MeterProvider = log
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		points := log.Points(t)
		harness.WantSum(t, points, 0, "weir.store.fallback.active", "weir.lane=vendor.test")
		harness.WantSum(t, points, 1, "weir.admissions", "weir.store=shared")
		harness.WantCount(t, points, 1, "weir.wait.duration", "weir.wait.reason=store")
		if s := r.Transport.Snapshot()[0].Store; s == nil || s.Lost || s.Calls != 1 || s.Replicas != 1 {
			t.Errorf("Store = %+v, want one call and one replica", s)
		}

		f.Redis.Break(redispipe.Silent)
		waiting := r.Callers(t.Context(), 3)
		time.Sleep(time.Second)
		points = log.Points(t)
		harness.WantSum(t, points, 1, "weir.store.fallback.active", "weir.lane=vendor.test")
		unknown := float64(r.Transport.Snapshot()[0].Store.Unknown)
		harness.WantSum(t, points, unknown, "weir.store.takes.unknown", "weir.lane=vendor.test")
		if s := r.Transport.Snapshot()[0].Store; !s.Lost || s.Cause != "timeout" || unknown != 1 {
			t.Errorf("Store = %+v, want it lost for a timeout, and a permit with it", s)
		}
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		r.Get(weir.WithMaxWait(t.Context(), time.Millisecond), "expires")
		harness.WantSum(t, log.Points(t), 1, "weir.admissions", "weir.store=fallback", "weir.result=expired")

		f.Redis.Break(redispipe.Healthy)
		for _, got := range waiting.Wait() {
			r.Want("GET", got, 200)
		}
		time.Sleep(2 * time.Second) // a probe finds the store
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		points = log.Points(t)
		harness.WantSum(t, points, 0, "weir.store.fallback.active", "weir.lane=vendor.test")
		harness.WantSum(t, points, 2, "weir.admissions", "weir.store=shared", "weir.result=admitted")
		harness.WantSum(t, points, 4, "weir.admissions", "weir.store=fallback", "weir.result=admitted")
		unknown = float64(r.Transport.Snapshot()[0].Store.Unknown)

		// The counts of a removed lane stay.
		r.Transport.Close()
		harness.WantSum(t, log.Points(t), unknown, "weir.store.takes.unknown")
		for _, p := range log.Points(t) {
			if p.Kind == "updown" || p.Kind == "gauge" {
				t.Errorf("%s%v is exported for a closed transport", p.Name, p.Attributes)
			}
		}
	})
}

// Losses between two collections also count for a lane removed meanwhile, and a removed lane is
// exported as empty.
func TestMetricsOfLanesThatWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		lost := &loser{Limiter: harness.Free()}
		keys := []string{"a", "b"}
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			MeterProvider: log, MaxLanes: 1, Key: func(req *http.Request) string { return keys[0] },
			Store: harness.StoreFunc(func(key string, _ ...throttle.Limit) (throttle.Limiter, error) {
				if key == "a" {
					return lost, nil
				}
				return throttle.Local{}.Limiter(key)
			}),
		})
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		harness.WantSum(t, log.Points(t), 1, "weir.keys.active", "weir.lane=a")
		lost.unknown.Add(7)
		lost.void.Add(5)
		keys = keys[1:]
		r.Want("GET", r.Get(t.Context(), "b"), 200)
		points := log.Points(t)
		harness.WantSum(t, points, 7, "weir.store.takes.unknown", "weir.lane=a")
		harness.WantSum(t, points, 5, "weir.store.permits.void", "weir.lane=a")
		harness.WantSum(t, points, 0, "weir.keys.active", "weir.lane=a")
		harness.WantSum(t, points, 1, "weir.keys.active", "weir.lane=b")
		for range 2 {
			harness.WantSum(t, log.Points(t), 7, "weir.store.takes.unknown")
			harness.WantSum(t, log.Points(t), 5, "weir.store.permits.void")
		}
	})
}

// A loser lets everything pass and reports lost and void permits.
type loser struct {
	throttle.Limiter
	unknown, void atomic.Uint64
}

func (l *loser) State(throttle.Instant) throttle.State {
	return throttle.State{Whole: true, Store: &throttle.StoreState{Unknown: l.unknown.Load(), Void: l.void.Load()}}
}
