package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/throttle"
)

// Options are the replicas, what they share, and their faults.
type options struct {
	replicas int
	workers  int // of each replica
	limit    throttle.Limit
	length   time.Duration // of the run
	redis    string        // embeddedRedis, startRedis or an address
	chaos    bool
	seed     uint64 // of the chaos
	out      string // path of the pictures, without extension
}

// The words of -redis that are no address.
const (
	embeddedRedis = "embedded"
	startRedis    = "start"
)

// The bounds of what one machine can show.
const (
	maxReplicas = 64
	maxWorkers  = 1000
	maxCalls    = 1_000_000 // recorded by the vendor
	maxLength   = time.Hour
)

// parseOptions reads the flags. Asked for help, it prints it and returns
// flag.ErrHelp.
func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("fleet", flag.ContinueOnError)
	fs.IntVar(&o.replicas, "n", 8, "replicas, a process each")
	fs.IntVar(&o.workers, "workers", 8, "goroutines of each replica that call, one call after the other")
	fs.TextVar(&o.limit, "limit", throttle.TokenBucket(100, time.Second, 10), "`limit` that they share: a rate and a burst")
	fs.DurationVar(&o.length, "for", 20*time.Second, "how long they run")
	fs.StringVar(&o.redis, "redis", embeddedRedis, "`where` they share it: embedded; start, which starts a redis-server; or host:port")
	fs.BoolVar(&o.chaos, "chaos", false, "kill, stop and refuse on a schedule")
	fs.Uint64Var(&o.seed, "seed", 1, "of the schedule: the same seed gives the same")
	fs.StringVar(&o.out, "o", "fleet", "`path` of the pictures, without .svg and .png")
	if err := program.Parse(fs, args, help); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return o, o.check()
}

func (o options) check() error {
	switch {
	case o.replicas < 1 || o.replicas > maxReplicas:
		return fmt.Errorf("-n %d: want 1 to %d", o.replicas, maxReplicas)
	case o.workers < 1 || o.workers > maxWorkers:
		return fmt.Errorf("-workers %d: want 1 to %d", o.workers, maxWorkers)
	case o.length < time.Second || o.length > maxLength:
		return fmt.Errorf("-for %v: want 1s to %v", o.length, maxLength)
	case !isRate(o.limit):
		return fmt.Errorf(`-limit %q: want a rate and a burst, as in "100/s burst 10"`, o.limit)
	case o.limit.Burst > maxCalls || o.limit.PerSecond()*o.length.Seconds() > maxCalls:
		return fmt.Errorf("-limit %q for %v: more than %d calls", o.limit, o.length, maxCalls)
	case o.chaos && o.length < leastChaos:
		return fmt.Errorf("-chaos needs -for %v at least", leastChaos)
	}
	if o.redis != embeddedRedis && o.redis != startRedis {
		if _, _, err := net.SplitHostPort(o.redis); err != nil {
			return fmt.Errorf("-redis %q: want %s, %s or host:port", o.redis, embeddedRedis, startRedis)
		}
	}
	if err := chart.CheckPath(o.out); err != nil {
		return fmt.Errorf("-o %w", err)
	}
	return nil
}

// isRate reports whether the embedded vendor can hold the fleet to such a limit.
func isRate(l throttle.Limit) bool {
	switch l.Algorithm {
	case throttle.AlgorithmTokenBucket, throttle.AlgorithmGCRA, throttle.AlgorithmLeakyBucket:
		return l.Unit == ""
	default:
		return false
	}
}
