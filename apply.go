package weir

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir/internal/strict"
	"github.com/weirgo/weir/throttle"
)

// applied is what Apply has made of configurations.
type applied struct {
	plan atomic.Pointer[plan] // nil: there was none

	mu      sync.Mutex
	started bool     // the fields were read, and may not change any more
	base    *program // what the program has set; nil before the first configuration
	now     Config   // all fields in force but Lanes and Routes
}

// A program is what the program itself set in a Transport.
type program struct {
	fields Config
	keyed  bool // by Key or Keys
	cost   func(*http.Request, throttle.Limit) int
}

// A plan is the lanes and routes of a configuration.
type plan struct {
	mux    *http.ServeMux
	routes map[string]*RouteConfig // by pattern
	lanes  map[string][]throttle.Limit
}

// Apply puts a configuration in force, in place of the one before. It is all or nothing: if the
// error is not nil, nothing has changed, and it joins all errors, each with its path in the
// document, such as routes[2].limits[0].
//
// Before the first use of the Transport all fields may change. Later Apply changes Limits, Lanes
// and Routes, in every lane and for later ones, and re-times all requests in line, as SetLimits
// does. A change of another field is an error. Two things must be so from the first use on: routes
// have lanes of their own only if Apply was called before. They have costs only if an earlier
// configuration had some, or the program has set Cost. Apply is safe for concurrent use, also
// beside the first request.
//
// A request in line keeps its lane and its cost. Limits set by SetLimits stay until the next Apply.
func (t *Transport) Apply(c Config) error {
	t.applied.mu.Lock()
	defer t.applied.mu.Unlock()
	if t.applied.base == nil {
		t.applied.base = t.program()
		t.applied.now = t.applied.base.fields
	}
	c = c.clone()
	next := t.applied.base.fields
	strict.Overlay(&next, c)
	next.Lanes, next.Routes = nil, nil
	p, errs := t.planOf(&c, &next)
	for _, f := range t.wrongFields(&next, &c) {
		if limits := f.field == "limits" || f.field == "shadow"; !limits || len(errs) == 0 { // the plan's are of single ones
			errs = append(errs, strict.At(f.field, f.err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("weir: configuration: %w", err)
	}
	if t.applied.started {
		if err := t.replan(p, next.Limits); err != nil {
			return fmt.Errorf("weir: configuration: %w", err)
		}
	} else {
		t.preset(&next, &c)
		t.applied.plan.Store(p)
	}
	t.applied.now = next
	return nil
}

// program returns what the program has set.
func (t *Transport) program() *program {
	limits := t.Limits
	if t.applied.started {
		limits = *t.limits.Load()
	}
	return &program{keyed: t.Key != nil || t.Keys != nil, cost: t.Cost, fields: Config{
		Limits: limits, Shadow: t.Shadow, Line: t.Line, InFlight: t.InFlight, Retry: t.Retry, MaxPause: t.MaxPause,
		Learn: t.Learn, Share: t.Share, WaitForReset: t.WaitForReset, MaxLanes: t.MaxLanes,
		ServerAddress: t.ServerAddress, UnguardedResends: t.UnguardedResends,
	}}
}

// preset sets the fields before first use.
func (t *Transport) preset(next, c *Config) {
	t.take(next)
	if !t.applied.base.keyed {
		t.Key = t.routeKey
	}
	if t.Cost = t.applied.base.cost; c.priced() {
		t.Cost = t.routeCost
	}
}

// take sets the fields that a configuration may set.
func (t *Transport) take(c *Config) {
	t.Limits, t.Shadow, t.Line, t.InFlight, t.Retry, t.MaxPause = c.Limits, c.Shadow, c.Line, c.InFlight, c.Retry, c.MaxPause
	t.Learn, t.Share, t.WaitForReset = c.Learn, c.Share, c.WaitForReset
	t.MaxLanes, t.ServerAddress, t.UnguardedResends = c.MaxLanes, c.ServerAddress, c.UnguardedResends
}

// wrongFields returns the errors of the fields that would be in force, each with its path.
func (t *Transport) wrongFields(next, c *Config) (wrong []fault) {
	if !t.applied.started {
		like := &Transport{Store: t.Store, Cost: t.applied.base.cost}
		like.take(next)
		if c.priced() {
			like.Cost = t.routeCost
		}
		for _, f := range like.faults() {
			wrong = append(wrong, fault{field: strict.Path(f.field), err: f.err})
		}
		return wrong
	}
	is := *next
	is.Limits = t.applied.now.Limits
	for _, err := range strict.Differences(t.applied.now, is) {
		wrong = append(wrong, fault{err: fmt.Errorf("%w after the first use", err)})
	}
	return wrong
}

// replan puts a plan and limits in force while running. Every lane first checks its limits; if one
// fails all the same, all get their old limits back.
func (t *Transport) replan(p *plan, limits []throttle.Limit) error {
	err := t.lanes.Check(func(key string) []throttle.Limit {
		own := t.ownLimits(p, key)
		if len(own) == 0 {
			return limits
		}
		return own
	})
	if err != nil {
		return err
	}
	plan, before := t.applied.plan.Swap(p), t.limits.Swap(&limits)
	if err := t.lanes.Retune(); err != nil {
		t.applied.plan.Store(plan)
		t.limits.CompareAndSwap(&limits, before) // unless SetLimits came between
		return errors.Join(err, t.lanes.Retune())
	}
	return nil
}

// planOf returns the plan of a configuration with which next is in force, and all its errors.
func (t *Transport) planOf(c, next *Config) (*plan, []error) {
	p := &plan{mux: http.NewServeMux(), routes: map[string]*RouteConfig{}, lanes: c.Lanes}
	errs := c.wrong()
	if !t.applied.base.keyed {
		errs = append(errs, c.wrongKeys()...)
	}
	for i := range c.Routes {
		r := c.Routes[i]
		wrong := func(field string, err error) {
			errs = append(errs, strict.At(fmt.Sprintf("routes[%d].%s", i, field), err))
		}
		if err := route(p.mux, c.Routes[:i+1]); err != nil {
			wrong("match", err)
		}
		of := r.Limits
		if len(of) == 0 && len(c.Lanes) == 0 && t.LimitsFor == nil {
			of = next.Limits
		}
		for _, l := range of {
			unit := cmp.Or(l.Unit, "requests")
			if err := l.Check(r.Cost[unit]); errors.Is(err, throttle.ErrExceedsBurst) {
				wrong(strict.Key("cost", unit), err)
			}
		}
		if len(r.Limits) > 0 && t.applied.base.keyed {
			wrong("limits", errors.New("the program has set Key or Keys, which make the lanes"))
		}
		if started := t.applied.started; started && len(r.Limits) > 0 && t.Key == nil {
			wrong("limits", errors.New("no configuration was applied before the first use, so routes have no lanes"))
		} else if started && len(r.Cost) > 0 && t.Cost == nil {
			wrong("cost", errors.New("no configuration before the first use had a cost"))
		}
		for unit := range r.Cost {
			if t.LimitsFor == nil && !c.counts(next, unit) {
				wrong("cost", fmt.Errorf("no limit counts %q", unit))
			}
		}
		p.routes[r.Match] = &r
	}
	return p, errs
}

// counts reports whether a limit counts a unit when next is in force.
func (c *Config) counts(next *Config, unit string) bool {
	lists := [][]throttle.Limit{next.Limits, next.Shadow}
	for _, limits := range c.Lanes {
		lists = append(lists, limits)
	}
	for _, r := range c.Routes {
		lists = append(lists, r.Limits)
	}
	for _, limits := range lists {
		for _, l := range limits {
			if cmp.Or(l.Unit, "requests") == unit {
				return true
			}
		}
	}
	return false
}

// route registers the pattern of the last route. The error says why nothing matches it, or
// which route before conflicts with it.
func route(mux *http.ServeMux, routes []RouteConfig) error {
	last := len(routes) - 1
	pattern := routes[last].Match
	if err := handle(http.NewServeMux(), pattern); err != nil {
		return err
	}
	method, rest, ok := strings.Cut(strings.ReplaceAll(pattern, "\t", " "), " ")
	if !ok {
		method, rest = "", pattern
	}
	if method != strings.ToUpper(method) {
		return fmt.Errorf("method %q is not in capitals", method)
	}
	host, _, _ := strings.Cut(strings.TrimLeft(rest, " "), "/")
	if host != strings.ToLower(host) {
		return fmt.Errorf("host %q is not in lower case", host)
	}
	if _, _, err := net.SplitHostPort(host); err == nil {
		return fmt.Errorf("host %q has a port, and patterns match without it", host)
	}
	if handle(mux, pattern) == nil {
		return nil
	}
	for i, before := range routes[:last] {
		pair := http.NewServeMux()
		if handle(pair, before.Match) == nil && handle(pair, pattern) != nil {
			return fmt.Errorf("conflicts with %q of routes[%d]: some requests match both, and neither is more specific", before.Match, i)
		}
	}
	return nil
}

// handle registers a pattern. ServeMux panics if it cannot be read, or conflicts with another.
func handle(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%v", fault)
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

// priced reports whether a route has costs.
func (c *Config) priced() bool {
	for _, r := range c.Routes {
		if len(r.Cost) > 0 {
			return true
		}
	}
	return false
}

// ownLimits returns the limits of a key under a plan, or nil if Limits applies to it.
func (t *Transport) ownLimits(p *plan, key string) []throttle.Limit {
	if p != nil {
		if limits := p.lanes[key]; len(limits) > 0 {
			return limits
		}
		_, pattern, _ := strings.Cut(key, " ")
		if r := p.routes[pattern]; r != nil && len(r.Limits) > 0 {
			return r.Limits
		}
	}
	if t.LimitsFor != nil {
		return t.LimitsFor(key)
	}
	return nil
}

// routeKey is the Key of a Transport with a configuration: a route with limits has a lane.
func (t *Transport) routeKey(req *http.Request) string {
	if r := t.configuredRoute(req); r != nil && len(r.Limits) > 0 {
		return ByHost(req) + " " + r.Match
	}
	return ByHost(req)
}

// routeCost is the Cost of a Transport whose routes have costs.
func (t *Transport) routeCost(req *http.Request, limit throttle.Limit) int {
	if r := t.configuredRoute(req); r != nil {
		if n, ok := r.Cost[cmp.Or(limit.Unit, "requests")]; ok {
			return n
		}
	}
	if cost := t.applied.base.cost; cost != nil {
		return cost(req, limit)
	}
	return 1
}

// configuredRoute returns the route of a request, or nil.
func (t *Transport) configuredRoute(req *http.Request) *RouteConfig {
	p := t.applied.plan.Load()
	if p == nil || len(p.routes) == 0 {
		return nil
	}
	return p.routes[patternOf(p.mux, req)]
}
