package testserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/internal/testserver"
)

// A rule is a limit by its definition: whether a request of some cost may be
// granted at an instant, given everything granted before.
type rule struct {
	limit  testserver.Limit
	grants func(before testserver.Arrivals, at time.Duration, cost int) bool
}

var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func bucketRule(permits int, per time.Duration, burst int) rule {
	return rule{testserver.TokenBucket(permits, per, burst), func(before testserver.Arrivals, at time.Duration, cost int) bool {
		// No stretch from a grant until now may exceed the burst and what the
		// stretch has brought.
		spent := int64(cost)
		ok := cost <= burst
		for i := len(before) - 1; i >= 0; i-- {
			spent += int64(before[i].Cost)
			brought := int64(permits) * int64(at-before[i].At)
			ok = ok && spent*int64(per) <= int64(burst)*int64(per)+brought
		}
		return ok
	}}
}

func windowRule(permits int, per time.Duration) rule {
	return rule{testserver.FixedWindow(permits, per), func(before testserver.Arrivals, at time.Duration, cost int) bool {
		index := func(at time.Duration) int64 { return bubbleStart.Add(at).UnixNano() / int64(per) }
		for _, a := range before {
			if index(a.At) == index(at) {
				cost += a.Cost
			}
		}
		return cost <= permits
	}}
}

func useWindowRule(permits int, per time.Duration) rule {
	return rule{testserver.FirstUseWindow(permits, per), func(before testserver.Arrivals, at time.Duration, cost int) bool {
		used, end := 0, time.Duration(0)
		for _, a := range before {
			if a.At >= end {
				used, end = 0, a.At+per
			}
			used += a.Cost
		}
		return at >= end && cost <= permits || used+cost <= permits
	}}
}

func logRule(permits int, per time.Duration) rule {
	return rule{testserver.SlidingLog(permits, per), func(before testserver.Arrivals, at time.Duration, cost int) bool {
		for _, a := range before {
			if a.At > at-per {
				cost += a.Cost
			}
		}
		return cost <= permits
	}}
}

func drawRule(t *rapid.T) rule {
	permits := rapid.IntRange(1, 12).Draw(t, "permits")
	per := time.Duration(rapid.Int64Range(1, 40).Draw(t, "per ms"))*time.Millisecond + 7
	switch rapid.IntRange(0, 3).Draw(t, "algorithm") {
	case 0:
		return bucketRule(permits, per, rapid.IntRange(1, 12).Draw(t, "burst"))
	case 1:
		return windowRule(permits, per)
	case 2:
		return useWindowRule(permits, per)
	}
	return logRule(permits, per)
}

type step struct {
	gap  time.Duration // or one of the two below
	cost int
}

const (
	asTold    time.Duration = -1 // the wait in the last response
	justBelow time.Duration = -2 // a nanosecond less
)

func drawSteps(t *rapid.T) []step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		gap := rapid.OneOf(
			rapid.SampledFrom([]int64{0, int64(asTold), int64(justBelow)}),
			rapid.Int64Range(0, 5e6),
			rapid.Int64Range(0, 60e6),
		)
		return step{time.Duration(gap.Draw(t, "gap")), rapid.IntRange(1, 4).Draw(t, "cost")}
	}), 1, 60).Draw(t, "steps")
}

// play sends the steps to the vendor inside a bubble and returns the record and the decisions.
func play(t *testing.T, limits []testserver.Limit, steps []step) (arrivals testserver.Arrivals, decisions []testserver.Decision) {
	synctest.Test(t, func(*testing.T) {
		cost := 0
		vendor := &testserver.Vendor{
			Limits: limits,
			Cost:   func(*http.Request) int { return cost },
			Styles: []testserver.Style{func(_ http.Header, d testserver.Decision) { decisions = append(decisions, d) }},
		}
		vendor.Start()
		for _, s := range steps {
			if s.gap < 0 && len(decisions) > 0 {
				s.gap += decisions[len(decisions)-1].Wait - asTold
			}
			time.Sleep(s.gap)
			cost = s.cost
			vendor.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		}
		arrivals = vendor.Arrivals()
	})
	return arrivals, decisions
}

func TestLimitsGrantByDefinition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var limits []testserver.Limit
		var rules []rule
		for range rapid.IntRange(1, 3).Draw(rt, "limits") {
			rules = append(rules, drawRule(rt))
			limits = append(limits, rules[len(rules)-1].limit)
		}
		var before testserver.Arrivals
		grants := func(at time.Duration, cost int) bool {
			ok := true
			for _, r := range rules {
				ok = ok && r.grants(before, at, cost)
			}
			return ok
		}
		arrivals, decisions := play(t, limits, drawSteps(rt))
		for i, a := range arrivals {
			if want := grants(a.At, a.Cost); a.Granted != want {
				rt.Fatalf("%v: arrival %d at %v of cost %d: granted %v, want %v", limits, i, a.At, a.Cost, a.Granted, want)
			}
			wait := decisions[i].Wait
			if wait > 0 && grants(a.At+wait-1, a.Cost) {
				rt.Fatalf("%v: arrival %d reported a wait of %v: granted earlier", limits, i, wait)
			}
			// A cost beyond a limit's quota never fits, whatever other limits report.
			if wait > 0 && grants(a.At+time.Hour, a.Cost) && !grants(a.At+wait, a.Cost) && len(rules) == 1 {
				rt.Fatalf("%v: arrival %d reported a wait of %v: not granted then", limits, i, wait)
			}
			if a.Granted {
				before = append(before, a)
			}
		}
	})
}

func TestStandingsCountWhatIsLeft(t *testing.T) {
	tests := []struct {
		name          string
		limit         testserver.Limit
		steps         []step
		wantRemaining int
		wantReset     time.Duration
		wantNext      time.Duration
		wantWait      time.Duration
	}{
		{"bucket, first", testserver.TokenBucket(10, time.Second, 5), []step{{0, 1}}, 4, 100 * time.Millisecond, 100 * time.Millisecond, 0},
		{"bucket, part of a permit", testserver.TokenBucket(10, time.Second, 5), []step{{0, 3}, {50 * time.Millisecond, 1}}, 1, 350 * time.Millisecond, 50 * time.Millisecond, 0},
		{"bucket, refused", testserver.TokenBucket(10, time.Second, 1), []step{{0, 1}, {30 * time.Millisecond, 1}}, 0, 70 * time.Millisecond, 70 * time.Millisecond, 70 * time.Millisecond},
		{"bucket, never", testserver.TokenBucket(10, time.Second, 1), []step{{0, 2}}, 1, 0, 0, 0},
		{"bucket, thirds rounded up", testserver.TokenBucket(3, time.Second, 1), []step{{0, 1}, {0, 1}}, 0, 333_333_334, 333_333_334, 333_333_334},
		{"bucket, a third less a nanosecond", testserver.TokenBucket(3, time.Second, 1), []step{{0, 1}, {333_333_333, 1}}, 0, 1, 1, 1},
		{"window", testserver.FixedWindow(3, time.Second), []step{{200 * time.Millisecond, 2}}, 1, 800 * time.Millisecond, 800 * time.Millisecond, 0},
		{"window, refused", testserver.FixedWindow(3, time.Second), []step{{900 * time.Millisecond, 3}, {0, 1}}, 0, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
		{"window, next", testserver.FixedWindow(3, time.Second), []step{{900 * time.Millisecond, 3}, {100 * time.Millisecond, 1}}, 2, time.Second, time.Second, 0},
		{"window at first use", testserver.FirstUseWindow(3, time.Second), []step{{200 * time.Millisecond, 1}, {300 * time.Millisecond, 1}}, 1, 700 * time.Millisecond, 700 * time.Millisecond, 0},
		{"window at first use, refused", testserver.FirstUseWindow(3, time.Second), []step{{900 * time.Millisecond, 3}, {100 * time.Millisecond, 1}}, 0, 900 * time.Millisecond, 900 * time.Millisecond, 900 * time.Millisecond},
		{"log", testserver.SlidingLog(3, time.Second), []step{{0, 1}, {300 * time.Millisecond, 1}}, 1, time.Second, 700 * time.Millisecond, 0},
		{"log, as the oldest leaves", testserver.SlidingLog(3, time.Second), []step{{0, 2}, {time.Second, 1}}, 2, time.Second, time.Second, 0},
		{"log, refused", testserver.SlidingLog(2, time.Second), []step{{0, 1}, {300 * time.Millisecond, 1}, {0, 1}}, 0, time.Second, 700 * time.Millisecond, 700 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, decisions := play(t, []testserver.Limit{tt.limit}, tt.steps)
			got := decisions[len(decisions)-1].Standings[0]
			want := testserver.Standing{Limit: tt.limit, Remaining: tt.wantRemaining, Reset: tt.wantReset, Next: tt.wantNext, Wait: tt.wantWait}
			if got != want {
				t.Errorf("standing = %+v, want %+v", got, want)
			}
		})
	}
}

func TestConstructorsPanicOnWhatIsNotPositive(t *testing.T) {
	tests := map[string]func(){
		"bucket rate":    func() { testserver.TokenBucket(0, time.Second, 1) },
		"bucket per":     func() { testserver.TokenBucket(1, 0, 1) },
		"bucket burst":   func() { testserver.TokenBucket(1, time.Second, 0) },
		"bucket too big": func() { testserver.TokenBucket(1, 1000*time.Hour, 1<<30) },
		"window":         func() { testserver.FixedWindow(-1, time.Second) },
		"log":            func() { testserver.SlidingLog(1, -1) },
		"concurrency":    func() { testserver.Concurrency(0) },
	}
	for name, construct := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			construct()
		})
	}
}
