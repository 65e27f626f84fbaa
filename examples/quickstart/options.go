package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/throttle"
)

// Options say what is called, how often and how fast.
type options struct {
	url     string // empty: the embedded vendor
	limit   throttle.Limit
	calls   int
	workers int
	plain   bool   // run the plain client against url too
	out     string // path of the pictures, without extension
}

// maxCalls and maxWorkers bound what the program remembers and opens.
const (
	maxCalls   = 1_000_000
	maxWorkers = 10_000
)

// The defaults show a difference in half a minute for the embedded vendor, and are polite for a
// user's endpoint.
var (
	vendorDefaults   = options{limit: throttle.TokenBucket(50, time.Second, 8), calls: 500, workers: 32}
	endpointDefaults = options{limit: throttle.TokenBucket(2, time.Second, 1), calls: 20, workers: 4}
)

// parseOptions reads the flags. For -h it prints the help and returns flag.ErrHelp.
func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	var rate string
	var burst int
	fs := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	fs.StringVar(&o.url, "url", "", "`URL` to GET instead of the embedded vendor")
	fs.StringVar(&rate, "rate", "", "calls that Weir sends per second, or as in 100/m (default 50; with -url 2)")
	fs.IntVar(&burst, "burst", 0, "most calls that Weir sends at once (default 8; with -url 1)")
	fs.IntVar(&o.calls, "n", 0, "calls of each run (default 500; with -url 20)")
	fs.IntVar(&o.workers, "workers", 0, "goroutines that call (default 32; with -url 4)")
	fs.BoolVar(&o.plain, "plain", false, "with -url: run the plain, unlimited client first")
	fs.StringVar(&o.out, "o", "quickstart", "`path` of the pictures, without .svg and .png")
	if err := program.Parse(fs, args, help); err != nil {
		return o, err
	}
	if err := noArguments(fs.Args()); err != nil {
		return o, err
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return o.complete(given, rate, burst)
}

// noArguments rejects arguments that are not flags. An address is not repeated: it may hold a
// password.
func noArguments(args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case strings.Contains(args[0], "://"):
		return errors.New("an address needs -url before it")
	}
	return fmt.Errorf("unexpected argument %q", args[0])
}

// complete fills in the defaults of the flags that were not given and checks
// the others.
func (o options) complete(given map[string]bool, rate string, burst int) (options, error) {
	defaults := vendorDefaults
	if given["url"] {
		defaults = endpointDefaults
		if err := checkURL(o.url); err != nil {
			return o, err
		}
	}
	o.limit = defaults.limit
	if given["rate"] {
		limit, err := parseRate(rate)
		if err != nil {
			return o, err
		}
		o.limit.Permits, o.limit.Per = limit.Permits, limit.Per
	}
	for _, f := range []struct {
		name          string
		value         *int
		read, missing int
		most          int
	}{
		{"burst", &o.limit.Burst, burst, defaults.limit.Burst, maxCalls},
		{"n", &o.calls, o.calls, defaults.calls, maxCalls},
		{"workers", &o.workers, o.workers, defaults.workers, maxWorkers},
	} {
		*f.value = f.missing
		if !given[f.name] {
			continue
		}
		if f.read < 1 || f.read > f.most {
			return o, fmt.Errorf("-%s %d: want 1 to %d", f.name, f.read, f.most)
		}
		*f.value = f.read
	}
	if o.plain && o.url == "" {
		return o, errors.New("-plain: only with -url, the embedded vendor gets the plain client anyway")
	}
	if err := chart.CheckPath(o.out); err != nil {
		return o, fmt.Errorf("-o %w", err)
	}
	return o, nil
}

// parseRate reads "50", which is per second, or a bare rate of throttle.ParseLimit, such as
// "100/m".
func parseRate(s string) (throttle.Limit, error) {
	full := s
	if !strings.Contains(s, "/") {
		full += "/s"
	}
	limit, err := throttle.ParseLimit(full)
	if err != nil || limit != throttle.TokenBucket(limit.Permits, limit.Per, limit.Burst) || limit.Burst > 1 {
		return limit, fmt.Errorf("-rate %q: want calls per second, or calls per time as in 100/m", s)
	}
	return limit, nil
}

// checkURL never repeats the address, whose path, query or password may be a
// secret.
func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("-url: want http:// or https:// and a host (not shown, it may hold a secret)")
	}
	return nil
}
