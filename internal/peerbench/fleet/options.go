package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// The contenders.
const (
	xtime     = "x/time/rate"
	redisRate = "redis_rate"
	pipelined = "redis_rate-pipelined" // over go-redis' AutoPipeline
	increx    = "INCREX"               // of Redis 8.8, with a sleep
	throttled = "token-throttle"       // of Python
	weirs     = "weir"
	learning  = "weir-unknown"
	alone     = "weir-alone" // learning in one process
	ping      = "PING"
)

// options are the command line's.
type options struct {
	decision, line, crowd, hidden, faults bool
	telling                               []string // what the hidden vendor reports; empty: all
	lacking                               []string // contenders that cannot run on this machine

	runs       int
	lasts      time.Duration
	who        []string // empty: all
	demands    []string
	calls      int
	burst      int // of Weir's limit in the drain
	goroutines []int
	profile    string
}

// parse reads a command line.
func parse(args []string) (*options, error) {
	o := &options{demands: []string{"even", "skewed"}, goroutines: []int{1, 16, 256}}
	f := flag.NewFlagSet("fleet", flag.ContinueOnError)
	f.BoolVar(&o.decision, "decision", false, "decisions per second, instead of the drain")
	f.BoolVar(&o.line, "line", false, "500/s with 64 waiters, instead of the drain")
	f.BoolVar(&o.crowd, "crowd", false, "50 replicas of 1,000 waiters, instead of the drain")
	f.BoolVar(&o.hidden, "unknown", false, "the drain with nothing configured")
	f.BoolVar(&o.faults, "faults", false, "what befalls a fleet with nothing configured, instead of the drain")
	f.Func("telling", "of -unknown and -faults: bare, seconds, ms, x-ratelimit, ietf, coarse (all)", func(s string) error {
		return choose(&o.telling, s, "bare", "seconds", "ms", "x-ratelimit", "ietf", "coarse")
	})
	f.IntVar(&o.runs, "runs", 3, "runs of each contender")
	f.DurationVar(&o.lasts, "for", 0, "how long a run of -decision (1s), -line (8s) or -crowd (10s), or a phase of -faults (8s) lasts")
	f.IntVar(&o.calls, "n", 2000, "calls of the drain")
	f.IntVar(&o.burst, "burst", 18, "burst that Weir is told in the drain: the vendor's, less what its permit tolerance may add")
	f.StringVar(&o.profile, "cpuprofile", "", "file for a CPU profile of -decision")
	f.Func("who", "the only contenders, such as weir,redis_rate; PING is always there", func(s string) error {
		return choose(&o.who, s, xtime, redisRate, pipelined, increx, throttled, weirs, learning)
	})
	f.Func("demand", "of the drain: even, skewed (even,skewed)", func(s string) error {
		return choose(&o.demands, s, "even", "skewed")
	})
	f.Func("goroutines", "of -decision (1,16,256)", func(s string) error {
		o.goroutines = nil
		return numbers(&o.goroutines, s)
	})
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 || o.runs < 1 || o.calls < 1 || o.burst < 1 || o.lasts < 0 {
		return nil, fmt.Errorf("fleet: %q makes no sense; see -help", strings.Join(args, " "))
	}
	return o, nil
}

func choose(into *[]string, list string, of ...string) error {
	*into = strings.Split(list, ",")
	for _, name := range *into {
		if !slices.Contains(of, name) {
			return fmt.Errorf("%q is none of %s", name, strings.Join(of, ", "))
		}
	}
	return nil
}

func numbers(into *[]int, list string) error {
	for word := range strings.SplitSeq(list, ",") {
		var n int
		if _, err := fmt.Sscanf(word, "%d", &n); err != nil || n < 1 {
			return fmt.Errorf("%q is not a positive number", word)
		}
		*into = append(*into, n)
	}
	return nil
}

// among returns the chosen contenders that can run here: the usual ones, and optional ones only if
// they are named.
func (o *options) among(usual []string, optional ...string) []string {
	all := slices.Clone(usual)
	if len(o.who) > 0 {
		all = append(all, optional...)
	}
	return slices.DeleteFunc(all, func(name string) bool {
		return slices.Contains(o.lacking, name) || len(o.who) > 0 && !slices.Contains(o.who, name)
	})
}

// tells reports whether a vendor with these reports was chosen.
func (o *options) tells(name string) bool {
	return len(o.telling) == 0 || slices.Contains(o.telling, name)
}

// duration returns how long a run lasts that usually lasts d.
func (o *options) duration(usual time.Duration) time.Duration {
	if o.lasts > 0 {
		return o.lasts
	}
	return usual
}

// profiled runs f, under the profiler if a file for it was named.
func (o *options) profiled(f func() error) error {
	if o.profile == "" {
		return f()
	}
	file, err := os.Create(o.profile)
	if err != nil {
		return err
	}
	if err = pprof.StartCPUProfile(file); err == nil {
		err = f()
		pprof.StopCPUProfile()
	}
	return errors.Join(err, file.Close())
}

// A bench measures with one server and writes tables.
type bench struct {
	*options
	server *server
	out    io.Writer
	named  int // quotas so far
}
