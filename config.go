package weir

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/strict"
	"github.com/weirgo/weir/throttle"
)

// A Config is the part of a [Transport] that is data, for [Transport.Apply]. In JSON its fields
// have the names of the Go fields in lower camel case. Limits are texts as throttle.ParseLimit
// reads them, and durations are texts such as "1m30s":
//
//	{
//	  "limits": ["100/s burst 20"],
//	  "lanes":  {"api.github.com": ["5000/h", "100/s"]},
//	  "routes": [{"match": "POST /v1/chat", "limits": ["90000/m burst 9000 of tokens"], "cost": {"tokens": 800}}],
//	  "line":   {"maxWait": "30s"},
//	  "retry":  {"attempts": 3}
//	}
//
// A field that is left out, or zero, stays as the program has set it in the Transport. The
// zero Config changes nothing. Limits, Lanes and Routes may change while the Transport is
// running; all other fields only before its first use.
type Config struct {
	// Limits replace Transport.Limits. Nil means those; an empty list means no limits.
	Limits []throttle.Limit

	// Lanes are the limits of single lanes, by key. They come before the limits of a route,
	// and before LimitsFor. A key that is no host is an error if the program has set neither
	// Transport.Key nor Keys. Nil means none.
	Lanes map[string][]throttle.Limit

	// Routes are matched as by http.ServeMux: the most specific one counts, whatever their
	// order. Nil means none.
	Routes []RouteConfig

	// Shadow replaces Transport.Shadow. Nil means that.
	Shadow []throttle.Limit

	// Line, InFlight and Retry each take the place of the fields of the same name, one by one.
	Line     Line
	InFlight InFlight
	Retry    *backoff.Policy

	// The others replace the field of the same name. If zero, that one stays.
	MaxPause         time.Duration
	Learn            Learning
	Share            float64
	WaitForReset     bool
	MaxLanes         int
	ServerAddress    bool
	UnguardedResends bool
}

// A RouteConfig is the settings for the requests of one route. The zero value is an error.
type RouteConfig struct {
	// Match is a pattern of [http.ServeMux], such as "POST api.example.com/v1/users/{id}". Its
	// method is in capitals, and its host in lower case without a port.
	Match string

	// Limits make a lane of the route, one for each host, whose key is that of [ByRoute].
	// They are an error if the program has set Transport.Key or Keys. If empty, the requests stay
	// in the lane of their host.
	Limits []throttle.Limit

	// Cost is how many permits a request costs, by the unit of the limit; "requests" for limits
	// without one. A unit that is left out has the cost of Transport.Cost, or one permit. Nil means
	// that for all units. More than the burst of a limit is an error.
	Cost map[string]int
}

// clone returns an independent copy.
func (c Config) clone() Config {
	c.Limits, c.Shadow, c.Lanes, c.Routes = slices.Clone(c.Limits), slices.Clone(c.Shadow), maps.Clone(c.Lanes), slices.Clone(c.Routes)
	for key, limits := range c.Lanes {
		c.Lanes[key] = slices.Clone(limits)
	}
	for i := range c.Routes {
		r := &c.Routes[i]
		r.Limits, r.Cost = slices.Clone(r.Limits), maps.Clone(r.Cost)
	}
	return c
}

// UnmarshalJSON implements [json.Unmarshaler]. It reads strictly: unknown and duplicate fields,
// null and values of another type are errors. The error joins all faults, each with its path, such
// as routes[2].limits[0]. If it is not nil, c has not changed.
func (c *Config) UnmarshalJSON(text []byte) error {
	var read Config
	if err := strict.Decode(text, &read); err != nil {
		return fmt.Errorf("weir: configuration: %w", err)
	}
	*c = read
	return nil
}

// MarshalJSON implements [json.Marshaler]. It writes what UnmarshalJSON reads, without the
// fields that are zero and the functions of Retry. The error names a limit that does not
// validate.
func (c Config) MarshalJSON() ([]byte, error) { return strict.Encode(c) }

// wrongKeys returns an error for each key of Lanes that no request has if its host is the key.
func (c *Config) wrongKeys() (errs []error) {
	for _, key := range slices.Sorted(maps.Keys(c.Lanes)) {
		host, _, _ := strings.Cut(key, " ") // a route's pattern follows
		if strings.Contains(host, "/") || host != hostOf(&url.URL{Host: host}) {
			errs = append(errs, strict.At(strict.Key("lanes", key), errors.New("no request has this key: without Transport.Key it is a host in lower case")))
		}
	}
	return errs
}

// wrong returns all faults of a configuration by itself, each with its path.
func (c *Config) wrong() (errs []error) {
	check := func(path string, limits []throttle.Limit) {
		valid := true
		for i, l := range limits {
			if err := l.Validate(); err != nil {
				errs, valid = append(errs, strict.At(fmt.Sprintf("%s[%d]", path, i), err)), false
			}
		}
		if _, err := throttle.Resolve(limits...); err != nil && valid { // two limits that conflict
			errs = append(errs, strict.At(path, err))
		}
	}
	check("limits", c.Limits)
	check("shadow", c.Shadow)
	for _, key := range slices.Sorted(maps.Keys(c.Lanes)) {
		if check(strict.Key("lanes", key), c.Lanes[key]); len(c.Lanes[key]) == 0 {
			errs = append(errs, strict.At(strict.Key("lanes", key), errors.New("no limits")))
		}
	}
	for i, route := range c.Routes {
		path := fmt.Sprintf("routes[%d]", i)
		check(path+".limits", route.Limits)
		for _, unit := range slices.Sorted(maps.Keys(route.Cost)) {
			if n := route.Cost[unit]; n < 0 {
				errs = append(errs, strict.At(strict.Key(path+".cost", unit), fmt.Errorf("%d is negative", n)))
			}
		}
	}
	return errs
}
