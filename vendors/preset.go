package vendors

import (
	"net/http"
	"slices"
	"strings"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/throttle"
)

// A Preset is what is known of one vendor's limits. The functions of this package
// return a new one each time, and its fields may be changed.
type Preset struct {
	Name    string   // of the vendor, as headers.Lookup finds it
	Hosts   []string // that it is for, "*.example.com" for all below one
	Numbers []Number // at least one; those without a number say why

	Keys    string   // what shares a lane, in words
	Repeats string   // what may be repeated, in words; GET, PUT and DELETE always may
	Reads   []string // ends of paths whose POST changes nothing, and may be repeated; nil: none are known

	// Share is the part of each number that the Transport takes: 0.5 if another process
	// like this one spends the rest. It is at least one of each, and the Share of the Transport,
	// for what the vendor reports. Zero means 1.
	Share float64

	key   func(*http.Request) string // nil: weir.ByHost
	costs units                      // nil: a request costs one of each limit
}

// units are the costs of a request by unit. Of other units, each request costs one.
type units map[string]func(*http.Request) int

// Transport returns a new Transport with the preset's limits, keys, costs and dialect. It is
// yours to change before its first use.
func (p Preset) Transport() *weir.Transport {
	t := &weir.Transport{Key: p.key, Share: min(max(p.Share, 0), 1)}
	t.Dialect, _ = headers.Lookup(p.Name)
	routes := map[string][]throttle.Limit{}
	for _, n := range p.Numbers {
		n.Most, n.Burst = p.part(n.Most), p.part(n.Burst)
		if n.Most > 0 && n.In == 0 && (t.InFlight.Max == 0 || n.Most < t.InFlight.Max) {
			t.InFlight.Max = n.Most
		}
		switch l := n.Limit(); {
		case l == throttle.Limit{}:
		case n.Route != "":
			routes[n.Route] = append(routes[n.Route], l)
		default:
			t.Limits = append(t.Limits, l)
		}
	}
	for route := range routes { // LimitsFor replaces Limits, and does not add to them
		routes[route] = append(routes[route], t.Limits...)
	}
	if len(routes) > 0 {
		t.LimitsFor = func(key string) []throttle.Limit { return routes[key[strings.LastIndexByte(key, ' ')+1:]] }
	}
	if p.costs != nil {
		t.Cost = p.cost
	}
	if len(p.Reads) > 0 {
		t.Retry = &backoff.Policy{Idempotent: p.reads}
	}
	return t
}

// part returns the preset's share of a count, but at least one of it.
func (p Preset) part(n int) int {
	if p.Share <= 0 || p.Share >= 1 || n == 0 {
		return n
	}
	return max(int(float64(n)*p.Share), 1)
}

// cost returns what a request costs in the unit of a limit.
func (p Preset) cost(req *http.Request, l throttle.Limit) int {
	if f := p.costs[l.Unit]; f != nil {
		return f(req)
	}
	return 1
}

// reads reports whether a request only reads although its method is POST.
func (p Preset) reads(req *http.Request) bool {
	return req.Method == http.MethodPost && slices.ContainsFunc(p.Reads, func(end string) bool { return strings.HasSuffix(req.URL.Path, end) })
}

// preset returns a preset with the hosts of its dialect, unless it has its own.
func preset(p Preset) Preset {
	if d, ok := headers.Lookup(p.Name); ok && p.Hosts == nil {
		p.Hosts = slices.Clone(d.Hosts)
	}
	return p
}
