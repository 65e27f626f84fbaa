package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// A vendor is one that reports on each answer what is left.
type vendor struct {
	dialect
	limit   testserver.Limit
	service span
	workers int
	wrong   func() testserver.View // errors of its reports, new for each run; nil: none
	taken   float64                // share of the rate that strangers take for a while; zero: no strangers
	seconds int                    // for which a client that knows the limit is busy
}

// A dialect is how vendors report what is left, and under which host.
type dialect struct {
	name  string
	host  string
	style testserver.Style
}

// A span is the time that answers take: from the first to the second.
type span [2]time.Duration

var (
	atOnce = span{}
	soon   = span{5 * time.Millisecond, 5 * time.Millisecond}
	late   = span{40 * time.Millisecond, 80 * time.Millisecond}
)

// A reset is the meaning of a vendor's reset.
type reset string

const (
	next reset = "next permit" // and in some dialects zero while any is left
	full reset = "full bucket"
	none reset = "no reset"
)

// dialects are those of buckets, by the meaning of their reset.
var dialects = map[reset][]dialect{
	next: {
		{"RateLimit r, t", "draft.vendor.example", testserver.Seen(testserver.RateLimit, testserver.UntilFree)},
		{"X-RateLimit epoch rounded down", "api.vendor.example", testserver.Seen(testserver.Auth0, testserver.UntilNext)},
		{"Printful", "api.printful.com", testserver.Printful},
		{"OpenAI's fields, the rate as limit", "models.vendor.example", testserver.Seen(testserver.OpenAI, testserver.UntilFree, testserver.RateAsLimit)},
		{"X-RateLimit epoch", "api.vendor.example", testserver.Seen(testserver.XRateLimitEpoch, testserver.UntilFree)},
	},
	full: {
		{"OpenAI", "api.openai.com", testserver.OpenAI},
		{"X-RateLimit epoch, the rate as limit", "api.vendor.example", testserver.Seen(testserver.XRateLimitEpoch, testserver.RateAsLimit)},
		{"Anthropic", "api.anthropic.com", testserver.Anthropic},
		{"RateLimit-Remaining, -Reset", "draft.vendor.example", testserver.RateLimitLegacy},
	},
	none: {
		{"RateLimit r", "draft.vendor.example", testserver.Seen(testserver.RateLimit, testserver.NoReset)},
		{"Shopify", "weir.myshopify.com", testserver.Shopify},
		{"Spring Cloud Gateway", "gateway.vendor.example", testserver.Spring},
		{"Heroku", "api.heroku.com", testserver.Heroku},
	},
}

// grid returns the buckets, the windows, and those that are disturbed.
func grid(seconds int) []vendor {
	all := slices.Concat(buckets(), windows(), disturbed())
	for i := range all {
		all[i].seconds = seconds
	}
	return all
}

// buckets returns each reset with each time at 200/s burst 20, each burst with each reset at a time
// in rotation, and slow buckets.
func buckets() []vendor {
	var all []vendor
	used := make(map[reset]int)
	add := func(rate, burst, workers int, r reset, service span) {
		d := dialects[r][used[r]%len(dialects[r])]
		used[r]++
		d.name += ", " + string(r)
		all = append(all, vendor{d, testserver.TokenBucket(rate, time.Second, burst), service, workers, nil, 0, 0})
	}
	resets, times := []reset{next, full, none}, []span{atOnce, soon, late}
	for _, service := range times {
		for _, r := range resets {
			add(200, 20, 64, r, service)
		}
	}
	for i, burst := range []int{10, 50, 100} {
		for j, r := range resets {
			add(200, burst, 64, r, times[(i+j)%len(times)])
		}
	}
	for _, service := range times[:2] {
		for _, r := range resets {
			add(20, 10, 16, r, service)
		}
	}
	return all
}

// windows returns windows and logs, half of them without a reset.
func windows() []vendor {
	short := func(of func(int, time.Duration) testserver.Limit) testserver.Limit { return of(100, 3*time.Second) }
	long := func(of func(int, time.Duration) testserver.Limit) testserver.Limit { return of(300, 5*time.Second) }
	window := func(name, host string, style testserver.Style, limit testserver.Limit) vendor {
		return vendor{dialect{name, host, style}, limit, soon, 64, nil, 0, 0}
	}
	return []vendor{
		window("GitHub", "api.github.com", testserver.XRateLimitEpoch, short(testserver.FixedWindow)),
		window("Heroku, no reset", "api.heroku.com", testserver.Heroku, long(testserver.FixedWindow)),
		window("Discord", "discord.com", testserver.Discord, short(testserver.FirstUseWindow)),
		window("X-RateLimit, no reset", "api.vendor.example", testserver.Seen(testserver.XRateLimitEpoch, testserver.NoReset), long(testserver.FirstUseWindow)),
		window("RateLimit r, t", "draft.vendor.example", testserver.RateLimit, long(testserver.SlidingLog)),
		window("RateLimit r, no reset", "draft.vendor.example", testserver.Seen(testserver.RateLimit, testserver.NoReset), short(testserver.SlidingLog)),
	}
}

// disturbed returns a bucket and a window, each of two nodes that disagree by up to a tenth. One
// reading in ten is a second old, and strangers take half and leave.
func disturbed() []vendor {
	var all []vendor
	for _, limit := range []testserver.Limit{testserver.TokenBucket(200, time.Second, 20), testserver.FirstUseWindow(300, 5*time.Second)} {
		add := func(name string, taken float64, wrong func() testserver.View) {
			d := dialect{"X-RateLimit epoch, " + name, "api.vendor.example", testserver.XRateLimitEpoch}
			all = append(all, vendor{d, limit, soon, 64, wrong, taken, 0})
		}
		add("two nodes", 0, func() testserver.View { return testserver.TwoNodes(0.1) })
		add("stale", 0, func() testserver.View { return testserver.Stale(0.1, time.Second) })
		add("strangers", 0.5, nil)
	}
	return all
}

// calls returns how many calls a client that knows the limit sends in that time: the burst, and the
// rate. In a window, a client that loses one permit of that waits for another window. So it is
// lower there by the gate's allowed loss.
func (v vendor) calls() int {
	n := float64(v.seconds) * v.rate()
	if v.limit.Burst > 0 {
		return v.limit.Burst + int(n)
	}
	return int((float64(v.limit.Permits) + n) / v.mostWall())
}

// rate returns the calls that the vendor grants in a second.
func (v vendor) rate() float64 { return float64(v.limit.Permits) / v.limit.Per.Seconds() }

// mostWall returns the gate of the time, in ideal times. It is wider if more than half of the burst
// is in flight at the rate. With wrong numbers 0.85 of the limit is enough, and with strangers 0.9
// of the rest.
func (v vendor) mostWall() float64 {
	way := (v.service[0] + v.service[1]) / 2
	switch {
	case v.wrong != nil:
		return 1 / 0.85
	case v.taken > 0:
		return 1 / 0.9
	case v.limit.Burst > 0 && v.rate()*way.Seconds() > float64(v.limit.Burst)/2:
		return 1.10
	}
	return 1.05
}

// mostRefused returns the gate of the 429s: two, or one call in a hundred with
// wrong numbers, and in two hundred with strangers.
func (v vendor) mostRefused() int {
	switch {
	case v.wrong != nil:
		return v.calls() / 100
	case v.taken > 0:
		return v.calls() / 200
	}
	return 2
}

// isPlainBucket reports whether a [testserver.Ceiling] describes its grants.
func (v vendor) isPlainBucket() bool { return v.limit.Burst > 0 && v.wrong == nil && v.taken == 0 }

// String names the limit, the dialect and the time.
func (v vendor) String() string {
	limit := strings.Replace(v.limit.String(), "token-bucket ", "", 1)
	time := v.service[0].String()
	if v.service[0] != v.service[1] {
		time += "-" + v.service[1].String()
	}
	return fmt.Sprintf("%s, %s, %s", limit, v.name, time)
}
