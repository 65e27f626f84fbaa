package limits_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// config reads a configuration.
func config(t *testing.T, text string) (c weir.Config) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// apply applies a configuration.
func apply(t *testing.T, transport *weir.Transport, text string) {
	t.Helper()
	if err := transport.Apply(config(t, text)); err != nil {
		t.Fatal(err)
	}
}

// At 1.5 s half an interval is still to be earned: 50 ms of the new one.
func TestApplyTimesWaitersAnew(t *testing.T) {
	const ms = time.Millisecond
	for name, changed := range map[string]string{
		"Limits": `{"limits": ["10/s burst 1"]}`,
		"Lanes":  `{"limits": ["1/h"], "lanes": {"vendor.test": ["10/s burst 1"]}}`,
		"Routes": `{"limits": ["1/h"], "routes": [{"match": "/", "limits": ["10/s burst 1"]}]}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			transport := new(weir.Transport)
			apply(t, transport, strings.ReplaceAll(changed, "10/s", "1/s"))
			r := harness.PipeRig(t, &testserver.Vendor{}, transport)
			callers := r.Callers(t.Context(), 5)
			time.Sleep(1500 * ms)
			apply(t, transport, changed)
			callers.Wait()
			want := []time.Duration{0, 1000 * ms, 1550 * ms, 1650 * ms, 1750 * ms}
			harness.WantEqual(t, name+": arrivals", harness.Instants(r.Vendor.Arrivals()), want)
		})
	}
}

// The first request may come while a configuration is applied. It gets the limits before or after;
// later ones get those after.
func TestApplyBesideTheFirstRequest(t *testing.T) {
	c := config(t, `{"limits": ["10000/s burst 7"]}`)
	for range 200 {
		transport := &weir.Transport{Base: harness.Stub{}, Limits: harness.Every(time.Millisecond), Learn: weir.LearnOff}
		var first sync.WaitGroup
		first.Go(func() {
			if resp, err := transport.RoundTrip(harness.GetOf("vendor.test")); err != nil {
				t.Error(err)
			} else {
				resp.Body.Close()
			}
		})
		if err := transport.Apply(c); err != nil {
			t.Fatal(err)
		}
		first.Wait()
		for _, s := range transport.Snapshot() {
			if got := s.Limits[0].Limit.Burst; got != 7 {
				t.Fatalf("lane %q has a burst of %d, want 7", s.Key, got)
			}
		}
		transport.Close()
	}
}

// A request of a route waits in the route's lane, at the route's cost.
func TestAppliedRouteHasALaneAndACost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := new(weir.Transport)
		apply(t, transport, `{"limits": ["1/s burst 1"], "routes": [
			{"match": "GET /bulk", "limits": ["10/s burst 10", "100/s burst 100 of tokens"], "cost": {"requests": 5, "tokens": 100}},
			{"match": "GET /free", "cost": {"requests": 0}}]}`)
		r := harness.PipeRig(t, &testserver.Vendor{}, transport)
		for range 3 {
			r.Want("GET", r.Do(r.Path("/bulk")), 200)
		}
		for range 2 {
			r.Want("GET", r.Do(r.Path("/free")), 200)
		}
		for range 2 {
			r.Want("GET", r.Do(r.Path("/else")), 200)
		}
		want := []time.Duration{0, time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second, 3 * time.Second}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
		harness.WantEqual(t, "lanes", r.Keys(), []string{"vendor.test", "vendor.test GET /bulk"})
	})
}

// Settings absent from a configuration are as the program set them, whatever an earlier
// configuration had.
func TestApplyGoesBackToTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &weir.Transport{Limits: harness.Every(time.Second)}
		apply(t, transport, `{"limits": ["1/m burst 1"]}`)
		apply(t, transport, `{"maxPause": "1m"}`)
		r := harness.PipeRig(t, &testserver.Vendor{}, transport)
		r.Callers(t.Context(), 2).Wait()
		apply(t, transport, `{"limits": ["1/h burst 1"], "maxPause": "1m"}`)
		apply(t, transport, `{"maxPause": "1m"}`)
		r.Callers(t.Context(), 1).Wait()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 3))
	})
}

// Every error is reported with its path, and nothing has changed.
func TestApplyIsAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &weir.Transport{Limits: harness.Every(time.Second)}
		apply(t, transport, `{}`)
		r := harness.PipeRig(t, &testserver.Vendor{}, transport)
		r.Spend()
		err := transport.Apply(weir.Config{
			Limits:   []throttle.Limit{throttle.TokenBucket(100, time.Second, 1), {Permits: -1}},
			Lanes:    map[string][]throttle.Limit{"a.example": nil},
			Routes:   []weir.RouteConfig{{Match: "/{"}, {Match: "/y"}, {Match: "/y", Cost: map[string]int{"tokenz": -1}}},
			MaxPause: time.Second,
			Line:     weir.Line{MaxWait: time.Second},
		})
		for _, want := range []string{
			`limits[1]: `, `lanes["a.example"]: no limits`, `routes[0].match: `, `routes[2].match: `, `routes[2].cost["tokenz"]: -1 is negative`,
			`routes[2].cost: no limit counts "tokenz"`, `maxPause: 0s cannot become 1s after the first use`, `line.maxWait: 0s cannot become 1s`,
			`routes[2].cost: no configuration before the first use had a cost`,
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Apply = %v, want %q in it", err, want)
			}
		}
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 2))
	})
}

// Limits that could never grant a request, or would reject every one, are errors.
func TestApplyNamesRoutesThatCannotWork(t *testing.T) {
	for text, want := range map[string]string{
		`{"routes": [{"match": "/a", "limits": ["90000/m of tokens"], "cost": {"tokens": 800}}]}`: `routes[0].cost["tokens"]: throttle: 800 permits exceed burst of 1 of limit 90000/m of tokens`,
		`{"limits": ["9/m of tokens"], "routes": [{"match": "/a", "cost": {"tokens": 2}}]}`:       `routes[0].cost["tokens"]: throttle: 2 permits exceed burst of 1 of limit 9/m of tokens`,
		`{"lanes": {"https://api.example": ["9/m"]}}`:                                             `lanes["https://api.example"]: no request has this key`,
		`{"lanes": {"API.example GET /a": ["9/m"]}}`:                                              `lanes["API.example GET /a"]: no request has this key`,
		`{"limits": ["9/m"], "routes": [{"match": "/a", "cost": {"tokens": 2}}]}`:                 `routes[0].cost: no limit counts "tokens"`,
		`{"routes": [{"match": "GET API.example/a"}]}`:                                            `routes[0].match: host "API.example" is not in lower case`,
		`{"routes": [{"match": "get /a"}]}`:                                                       `routes[0].match: method "get" is not in capitals`,
		`{"routes": [{"match": "GET api.example:443/a"}]}`:                                        `routes[0].match: host "api.example:443" has a port, and patterns match without it`,
		`{"routes": [{"match": "/a"}, {"match": "/b"}, {"match": "/a"}]}`:                         `routes[2].match: conflicts with "/a" of routes[0]`,
		`{"routes": [{"match": "GET /a/{x}/b"}, {"match": "GET /a/c/{y}"}]}`:                      `routes[1].match: conflicts with "GET /a/{x}/b" of routes[0]`,
	} {
		replaced := throttle.TokenBucket(10, time.Second, 10).Of("tokens")
		err := (&weir.Transport{Limits: []throttle.Limit{replaced}}).Apply(config(t, text))
		if err == nil || !strings.HasPrefix(err.Error(), "weir: configuration: "+want) || strings.Contains(err.Error(), ".go") {
			t.Errorf("Apply of %s = %v, want %s", text, err, want)
		}
	}
	apply(t, new(weir.Transport), `{"limits": ["9/m of tokens"], "lanes": {"": ["1/s"], "[::1]:80": ["1/s"], "b.test GET /": ["1/s"], "a.test": ["9/m burst 9 of tokens"]}, "routes": [{"match": "a.test/", "cost": {"tokens": 2}}]}`)
}

// LimitsFor may look at the lanes while a configuration is applied.
func TestApplyAsksALimitsForThatLooks(t *testing.T) {
	transport := &weir.Transport{Base: harness.Stub{}}
	transport.LimitsFor = func(string) []throttle.Limit {
		return []throttle.Limit{throttle.TokenBucket(12/max(1, len(transport.Snapshot())), time.Second, 1)}
	}
	defer transport.Close()
	resp, err := transport.RoundTrip(harness.GetOf("vendor.test"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	apply(t, transport, `{"limits": ["1/s"]}`)
}

// Lanes may be read before the program has a configuration.
func TestApplyAfterALook(t *testing.T) {
	transport := new(weir.Transport)
	if lanes := transport.Snapshot(); len(lanes) > 0 {
		t.Errorf("Snapshot of an unused Transport = %+v", lanes)
	}
	apply(t, transport, `{"maxPause": "5s"}`)
}

// A program may build its next configuration in the one in force.
func TestApplyKeepsACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config(t, `{"limits": ["1/s"], "lanes": {"vendor.test": ["1/s"]}, "routes": [{"match": "/", "limits": ["1/s"], "cost": {"requests": 1}}]}`)
		transport := new(weir.Transport)
		if err := transport.Apply(c); err != nil {
			t.Fatal(err)
		}
		c.Limits[0], c.Lanes["vendor.test"][0], c.Routes[0].Limits[0] = throttle.Limit{}, throttle.Limit{}, throttle.Limit{}
		c.Routes[0].Cost["requests"] = 9
		delete(c.Lanes, "vendor.test")
		r := harness.PipeRig(t, &testserver.Vendor{}, transport)
		r.Spend()
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 2))
	})
}

// If the limiter of one lane cannot be tuned, all lanes keep their limits.
func TestApplyIsAllOrNothingOverLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &weir.Transport{Limits: harness.Every(time.Second)}
		transport.Store = harness.StoreFunc(func(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
			if key == "fixed.example" {
				return harness.Once(), nil
			}
			return throttle.Local{}.Limiter(key, limits...)
		})
		apply(t, transport, `{}`)
		r := harness.PipeRig(t, &testserver.Vendor{}, transport)
		r.Spend()
		r.To("fixed.example")
		err := transport.Apply(config(t, `{"limits": ["100/s burst 100"], "lanes": {"vendor.test": ["50/s burst 50"]}}`))
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "fixed.example") {
			t.Errorf("Apply = %v, want errors.ErrUnsupported of fixed.example", err)
		}
		r.Want("GET of a lane to come", r.To("later.test"), 200)
		for _, lane := range transport.Snapshot() {
			if lane.Key != "fixed.example" && lane.Limits[0].Limit.Permits != 1 {
				t.Errorf("lane %s has limits %+v, want those before", lane.Key, lane.Limits)
			}
		}
	})
}

// A lane with waiting calls priced in a unit keeps a limit of it, and then no lane changes.
func TestApplyAsksEveryLaneFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tuned := 0
		transport := new(weir.Transport)
		transport.Store = harness.StoreFunc(func(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
			l, err := throttle.Local{}.Limiter(key, limits...)
			return tuning{l, &tuned}, err
		})
		apply(t, transport, `{"limits": ["1/s", "1000/s of tokens"], "routes": [{"match": "/", "cost": {"tokens": 1}}]}`)
		r := harness.PipeRig(t, &testserver.Vendor{}, transport)
		r.Spend()
		r.To("b.test")
		err := transport.Apply(config(t, `{"limits": ["9/s", "9/s of tokens"], "lanes": {"vendor.test": ["9/s"]}}`))
		if err == nil || !strings.Contains(err.Error(), `limits of lane "vendor.test": fewer limits of "tokens" than before`) || tuned > 0 {
			t.Errorf("Apply = %v, and %d lanes were tuned, want an error of vendor.test alone", err, tuned)
		}
	})
}

// A tuning limiter counts its Tune calls.
type tuning struct {
	throttle.Limiter
	tuned *int
}

func (t tuning) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	*t.tuned++
	return t.Limiter.Tune(now, limits...)
}

// The program's own Key chooses the lanes, and its Cost applies if a route has none.
func TestApplyBesideTheProgramsKeyAndCost(t *testing.T) {
	transport := &weir.Transport{
		Key:  func(*http.Request) string { return "one" },
		Cost: func(*http.Request, throttle.Limit) int { return 2 },
	}
	err := transport.Apply(config(t, `{"routes": [{"match": "/a", "limits": ["1/s"]}]}`))
	if err == nil || !strings.Contains(err.Error(), "routes[0].limits: the program has set Key") {
		t.Errorf("Apply = %v, want that Key is set", err)
	}
	several := &weir.Transport{Keys: func(*http.Request) []string { return []string{"customer", "account"} }}
	if err := several.Apply(config(t, `{"routes": [{"match": "/a", "limits": ["1/s"]}]}`)); err == nil || !strings.Contains(err.Error(), "routes[0].limits: the program has set Key or Keys") {
		t.Errorf("Apply = %v, want that Keys is set", err)
	}
	if apply(t, several, `{"lanes": {"account": ["10/s"]}}`); several.Key != nil {
		t.Error("Apply sets Key beside Keys")
	}
	apply(t, transport, `{"limits": ["10/s burst 9 of tokens", "10/s"], "routes": [{"match": "/a", "cost": {"tokens": 7}}, {"match": "[::1]/", "cost": {"tokens": 7}}]}`)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://vendor.example/a", http.NoBody)
	tokens, requests := throttle.TokenBucket(10, time.Second, 1).Of("tokens"), throttle.TokenBucket(10, time.Second, 1)
	if n, m := transport.Cost(req, tokens), transport.Cost(req, requests); n != 7 || m != 2 {
		t.Errorf("Cost = %d tokens and %d requests, want 7 of the route and 2 of the program", n, m)
	}
}
