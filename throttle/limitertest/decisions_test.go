package limitertest_test

import (
	"errors"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/throttle/limitertest"
)

// A wrong limiter is a correct one, but for the methods that are set.
type wrong struct {
	throttle.Limiter
	take      func(l throttle.Limiter, now throttle.Instant, r throttle.Request) (throttle.Grant, error)
	forecast  func(f throttle.Forecast) throttle.Forecast
	refund    func(l throttle.Limiter, now throttle.Instant, g throttle.Grant, r throttle.Request)
	settle    func(l throttle.Limiter, now throttle.Instant, g throttle.Grant, r, actual throttle.Request)
	reconcile func(l throttle.Limiter, now throttle.Instant, f throttle.Fact)
	tune      func(error) error
	tolerance time.Duration
	state     func(s throttle.State)
}

func (w *wrong) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	if w.take == nil {
		return w.Limiter.Take(now, r)
	}
	return w.take(w.Limiter, now, r)
}

func (w *wrong) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	f := w.Limiter.Forecast(now, r)
	if w.forecast != nil {
		f = w.forecast(f)
	}
	return f
}

func (w *wrong) Refund(now throttle.Instant, g throttle.Grant, r throttle.Request) {
	if w.refund == nil {
		w.Limiter.Refund(now, g, r)
	} else {
		w.refund(w.Limiter, now, g, r)
	}
}

func (w *wrong) Settle(now throttle.Instant, g throttle.Grant, r, actual throttle.Request) {
	if w.settle == nil {
		w.Limiter.Settle(now, g, r, actual)
	} else {
		w.settle(w.Limiter, now, g, r, actual)
	}
}

func (w *wrong) Reconcile(now throttle.Instant, f throttle.Fact) {
	if w.reconcile == nil {
		w.Limiter.Reconcile(now, f)
	} else {
		w.reconcile(w.Limiter, now, f)
	}
}

func (w *wrong) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	err := w.Limiter.Tune(now, limits...)
	if w.tune != nil {
		err = w.tune(err)
	}
	return err
}

func (w *wrong) Tolerance() time.Duration {
	if w.tolerance != 0 {
		return w.tolerance
	}
	return w.Limiter.Tolerance()
}

func (w *wrong) State(now throttle.Instant) throttle.State {
	s := w.Limiter.State(now)
	if w.state != nil {
		w.state(s)
	}
	return s
}

// asked returns a wrong limiter that changes requests, and answered one that changes grants.
func asked(change func(now throttle.Instant, r throttle.Request) throttle.Request) wrong {
	return wrong{take: func(l throttle.Limiter, now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
		return l.Take(now, change(now, r))
	}}
}

func answered(change func(now throttle.Instant, g throttle.Grant, err error) (throttle.Grant, error)) wrong {
	return wrong{take: func(l throttle.Limiter, now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
		g, err := l.Take(now, r)
		return change(now, g, err)
	}}
}

// wrongs are wrong limiters by the rule that they break.
var wrongs = map[string]wrong{
	"a whole bucket lets out its burst and then its rate": answered(func(now throttle.Instant, g throttle.Grant, err error) (throttle.Grant, error) {
		if g.At > now {
			g.At-- // early
		}
		return g, err
	}),
	"a refused request costs nothing": answered(func(now throttle.Instant, g throttle.Grant, err error) (throttle.Grant, error) {
		if g.At > now {
			g.At++ // late
		}
		return g, err
	}),
	"what can never be granted is an error at once": answered(func(_ throttle.Instant, g throttle.Grant, err error) (throttle.Grant, error) {
		if err != nil {
			err = errors.New(err.Error())
		}
		return g, err
	}),
	"what can never be granted is an error at once, even all of them": {take: func(l throttle.Limiter, now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
		if r.N == math.MaxInt {
			return throttle.Grant{At: now}, nil
		}
		return l.Take(now, r)
	}},
	"credit for lateness is only for time in line": asked(func(_ throttle.Instant, r throttle.Request) throttle.Request {
		r.Since = 1
		return r
	}),
	"a late timer never slows the schedule": asked(func(now throttle.Instant, r throttle.Request) throttle.Request {
		r.Since = now
		return r
	}),
	"a request that does not say since when it waits comes now": asked(func(_ throttle.Instant, r throttle.Request) throttle.Request {
		r.Since = max(r.Since, 1)
		return r
	}),
	"limits beyond the list of costs are charged the common one": asked(func(_ throttle.Instant, r throttle.Request) throttle.Request {
		if r.Each != nil {
			r.N = 0
		}
		return r
	}),
	"each limit is charged its own permits": asked(func(_ throttle.Instant, r throttle.Request) throttle.Request {
		r.Each = nil
		return r
	}),
	"what is reserved is left by all requests but urgent ones": asked(func(_ throttle.Instant, r throttle.Request) throttle.Request {
		r.Urgent = true
		return r
	}),
	"a forecast names nothing but what the request would wait for": {forecast: func(f throttle.Forecast) throttle.Forecast {
		f.Reason = throttle.ReasonStore
		return f
	}},
	"every history of bucket keeps the bound": {forecast: func(f throttle.Forecast) throttle.Forecast {
		f.At++
		return f
	}},
	"the last permit handed out shortens the line when it comes back": {refund: func(throttle.Limiter, throttle.Instant, throttle.Grant, throttle.Request) {}},
	"a permit given back keeps its instant and does not move the line": {refund: func(l throttle.Limiter, now throttle.Instant, g throttle.Grant, r throttle.Request) {
		l.Refund(now, g, r)
		l.Refund(now, g, r)
	}},
	"overspend is always charged":                                       {settle: func(throttle.Limiter, throttle.Instant, throttle.Grant, throttle.Request, throttle.Request) {}},
	"nothing departs before the end of a pause, and then nothing saved": {reconcile: func(throttle.Limiter, throttle.Instant, throttle.Fact) {}},
	"the end of a pause begins no other one": {reconcile: func(l throttle.Limiter, now throttle.Instant, f throttle.Fact) {
		l.Reconcile(now, f)
		l.Reconcile(now, throttle.Fact{Until: f.Until})
	}},
	"limits that do not validate are an error, and the old ones stay": {tune: func(error) error { return nil }},
	"a line reaches the rate, even without histories":                 {tolerance: time.Hour},
	"the state has the limits in the order given":                     {state: func(s throttle.State) { slices.Reverse(s.Limits) }},
	"the state says what is left and when": {state: func(s throttle.State) {
		for i := range s.Limits {
			s.Limits[i].Headroom++
		}
	}},
}

// over returns a factory of limiters that are wrong over correct ones.
func over(w wrong) limitertest.Factory {
	return func(limits ...throttle.Limit) throttle.Limiter {
		w := w
		var err error
		if w.Limiter, err = (throttle.Local{Wall: func(now throttle.Instant) throttle.Instant { return now }}).Limiter("", limits...); err != nil {
			panic(err)
		}
		return &w
	}
}

// A wrong limiter fails at the rule that it breaks. Each is tested in a process of its own, because
// tests that fail are tests that fail.
func TestWrongDecisionsFail(t *testing.T) {
	if rule := os.Getenv("LIMITERTEST_WRONG"); rule != "" {
		suite := limitertest.Suite{Make: over(wrongs[rule]), Histories: 100}
		if strings.HasSuffix(rule, ", even without histories") {
			suite.Histories = 0
		}
		suite.Decisions(t)
		return
	}
	if testing.Short() {
		t.Skip("13 s under the race detector, which sees one goroutine in each process")
	}
	limitertest.Suite{Make: over(wrong{}), Histories: 100}.Decisions(t)
	for _, rule := range slices.Sorted(maps.Keys(wrongs)) {
		fails(t, "LIMITERTEST_WRONG="+rule, rule)
	}
}

// fails runs the test that calls it again, in a process with a variable, in which a rule must fail.
func fails(t *testing.T, variable, rule string) {
	t.Helper()
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=1m", "-rapid.nofailfile")
	again.Env = append(os.Environ(), variable)
	rule, _, _ = strings.Cut(rule, ", even")
	out, err := again.CombinedOutput()
	if want := "--- FAIL: " + t.Name() + "/" + strings.ReplaceAll(rule, " ", "_") + " "; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%s: %v, want %q in\n%s", variable, err, want, out)
	}
}
