package vendors_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/vendors"
)

// A departure is one call, and what it cost in each unit.
type departure struct {
	at   time.Duration
	cost map[string]int
}

// The oracle counts departures in every span. Calls may arrive late by this much.
func late(n vendors.Number) time.Duration { return min(n.In/10, 500*time.Millisecond) }

// most returns the most that left in any span of the number, with late calls.
func most(n vendors.Number, all []departure) (worst int) {
	sum, first := 0, 0
	for _, d := range all {
		sum += d.cost[n.Unit]
		for all[first].at <= d.at-n.In-late(n) {
			sum -= all[first].cost[n.Unit]
			first++
		}
		worst = max(worst, sum)
	}
	return worst
}

// burst returns the size that the vendor's bucket must have for all that left, with late calls.
func burst(n vendors.Number, all []departure) float64 {
	rate := float64(n.Most) / n.In.Seconds()
	spent, least, worst := 0.0, 0.0, 0.0 // least: of what was spent beyond the refill, before a call
	for _, d := range all {
		least = min(least, spent-rate*d.at.Seconds())
		spent += float64(d.cost[n.Unit])
		worst = max(worst, spent-rate*d.at.Seconds()-least)
	}
	return worst + rate*late(n).Seconds()
}

// drain lets calls of the kinds depart at full speed for three of the longest windows. After the
// first it pauses for a third of one, which fills buckets again.
func drain(t *testing.T, tr *weir.Transport, limits []throttle.Limit, longest time.Duration, reqs ...*http.Request) (all []departure) {
	t.Helper()
	limiter, err := throttle.Local{Wall: func(now throttle.Instant) throttle.Instant { return now }}.Limiter("", limits...)
	if err != nil {
		t.Fatal(err)
	}
	const began = throttle.Instant(1_800_000_000e9)
	asks, costs := make([]throttle.Request, len(reqs)), make([]map[string]int, len(reqs))
	for i, req := range reqs {
		costs[i] = map[string]int{}
		for _, l := range limits {
			each := 1
			if tr.Cost != nil {
				each = tr.Cost(req, l)
			}
			asks[i].Each, costs[i][l.Unit] = append(asks[i].Each, each), each
		}
	}
	paused := false
	for now := began; now.Sub(began) < 3*longest; {
		kind := len(all) % len(reqs)
		grant, err := limiter.Take(now, asks[kind])
		if err != nil {
			t.Fatal(err)
		}
		if grant.At > now {
			now = grant.At
			continue
		}
		all = append(all, departure{now.Sub(began), costs[kind]})
		if !paused && now.Sub(began) > longest {
			now, paused = now.Add(longest/3), true
		}
	}
	return all
}

// No span of any length that a vendor documents holds more than its number, whatever mix of
// calls leaves at full speed.
func TestPresetsStayBelowEachNumber(t *testing.T) {
	reads := httptest.NewRequest(http.MethodGet, "https://vendor.test/v2/a/manifests/latest", nil)
	writes := httptest.NewRequest(http.MethodPost, "https://vendor.test/a", strings.NewReader("text"))
	for _, p := range vendors.All() {
		tr := p.Transport()
		routes := map[string][]vendors.Number{}
		for _, n := range p.Numbers {
			if n.Most > 0 && n.In > 0 {
				routes[n.Route] = append(routes[n.Route], n)
			}
			if n.In == 0 && n.Most > 0 && tr.InFlight.Max != n.Most {
				t.Errorf("%s: %d in flight, want %v", p.Name, tr.InFlight.Max, n)
			}
		}
		for route, numbers := range routes {
			limits, longest := tr.Limits, time.Duration(0)
			if tr.LimitsFor != nil {
				limits = tr.LimitsFor("vendor.test 0123 " + route)
			}
			for _, n := range numbers {
				longest = max(longest, n.In)
			}
			if len(limits) != len(numbers) {
				t.Errorf("%s %s: %d limits for %d numbers", p.Name, route, len(limits), len(numbers))
			}
			for mix, reqs := range map[string][]*http.Request{"reads": {reads}, "writes": {writes}, "both": {reads, writes, reads}} {
				if p.Name == "Docker Hub" && mix == "writes" || p.Name == "HubSpot" && mix != "both" {
					continue // nothing is counted, or everything alike for days
				}
				all := drain(t, tr, limits, longest, reqs...)
				for _, n := range numbers {
					if got := most(n, all); n.Burst == 0 && got > n.Most {
						t.Errorf("%s %s, %s: %d in %v, want %v", p.Name, route, mix, got, n.In, n)
					}
					if got := burst(n, all); n.Burst > 0 && got > float64(n.Burst) {
						t.Errorf("%s %s, %s: a bucket of %v, want %v", p.Name, route, mix, got, n)
					}
				}
			}
		}
	}
}

// The oracle finds a limit that is one too high.
func TestOracleFindsOneTooMany(t *testing.T) {
	n := vendors.Number{Most: 100, In: 10 * time.Second}
	req := httptest.NewRequest(http.MethodGet, "https://vendor.test/", nil)
	all := drain(t, &weir.Transport{}, []throttle.Limit{throttle.SlidingLog(101, 11*time.Second)}, n.In, req)
	if got := most(n, all); got != 101 {
		t.Errorf("the oracle counts %d in %v, want 101", got, n.In)
	}
	n = vendors.Number{Most: 2, In: time.Second, Burst: 40}
	all = drain(t, &weir.Transport{}, []throttle.Limit{throttle.TokenBucket(2, time.Second, 41)}, time.Minute, req)
	if got := burst(n, all); got <= 40 {
		t.Errorf("the oracle finds a bucket of %v, want more than 40", got)
	}
}

// The limits and texts that the documentation gives.
func TestNumberLimit(t *testing.T) {
	for _, c := range []struct {
		number      vendors.Number
		text, limit string
	}{
		{vendors.Number{Most: 100, In: 10 * time.Second}, "100/10s", "log 100/11s"},
		{vendors.Number{Most: 5, In: time.Second}, "5/s", "log 5/1.2s"},
		{vendors.Number{Most: 5000, In: time.Hour, Unit: "points"}, "5000/h of points", "4498/3601s burst 500 of points"},
		{vendors.Number{Most: 2, In: time.Second, Burst: 40}, "2/s burst 40", "2/s burst 37"},
		{vendors.Number{Most: 10, In: time.Second, Burst: 40}, "10/s burst 40", "10/s burst 36"},
		{vendors.Number{Most: 2000, In: time.Second}, "2000/s", "1780/1.2s burst 200"},
		{vendors.Number{Most: 1000, In: time.Second, Burst: 2000}, "1000/s burst 2000", "1000/s burst 1790"},
		{vendors.Number{Most: 2, In: time.Second, Burst: 2}, "2/s burst 2", "2/s burst 1"},
		{vendors.Number{Most: 1e9, In: 10 * time.Hour, Burst: 1e9}, "1000000000/10h burst 1000000000", "1000000000/10h burst 999971944"},
		{vendors.Number{Most: 1, In: math.MaxInt64}, "1/2562047h47m16.854775807s", "log 1/2562047h47m16.854775807s"},
		{vendors.Number{Most: 2e9, In: math.MaxInt64 - 1, Burst: 2e9}, "2000000000/2562047h47m16.854775806s burst 2000000000", "2000000000/2562047h47m16.854775806s burst 1999999997"},
	} {
		want, err := throttle.ParseLimit(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.number.Limit(); got != want || c.number.String() != c.text {
			t.Errorf("Limit of %v = %v, want %v of %s", c.number, got, want, c.text)
		}
	}
	for _, n := range []vendors.Number{{}, {Most: 100}} {
		if got := n.Limit(); got != (throttle.Limit{}) {
			t.Errorf("Limit of %v = %v, want none", n, got)
		}
	}
}
