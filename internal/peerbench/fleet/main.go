// Command fleet has several processes share one limit through a Redis of their own, and prints how
// well they kept it and what that cost Redis.
//
//	go -C internal/peerbench run ./fleet             # 2,000 calls to one vendor, by 8 replicas
//	go -C internal/peerbench run ./fleet -unknown    # the same, with nothing configured
//	go -C internal/peerbench run ./fleet -faults     # replicas die, Redis is flushed and restarted
//	go -C internal/peerbench run ./fleet -decision   # decisions per second, Redis the bottleneck
//	go -C internal/peerbench run ./fleet -line       # 500/s, 64 waiters, burst 1
//	go -C internal/peerbench run ./fleet -crowd      # 50 replicas of 1,000 waiters on one key
//
// Add -who weir to leave the others out, and -runs 1 -for 2s for a first look.
//
// The vendor is the one of the drain: 200 calls a second and 20 at once, 5 ms
// each, Retry-After and RateLimit fields in whole seconds. Replicas are
// processes of this program; redis-server has to be installed, and is started
// on a free port, keeps nothing, and ends with the program. INCREX is measured if it
// has that command (Redis 8.8), and token-throttle if PEERBENCH_PYTHON, or python3,
// runs a Python with the packages redis and token-throttle.
//
// What Redis did is read from INFO commandstats, which counts what scripts do, too. The setup of
// connections is a column of its own. Lost are calls to Redis that Weir's store gave up: on an idle
// machine there are none, and a run with some proves little.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if spec, child := os.LookupEnv(taskVariable); child {
		exit(beReplica(spec))
	}
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = o.run(context.Background())
	}
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run measures what the options ask for.
func (o *options) run(ctx context.Context) error {
	server, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer server.end()
	b := &bench{options: o, server: server, out: os.Stdout}
	if err := b.look(ctx); err != nil {
		return err
	}
	for _, mode := range []struct {
		chosen  bool
		measure func(context.Context) error
	}{
		{!o.decision && !o.line && !o.crowd && !o.hidden && !o.faults, b.drain},
		{o.hidden, b.unknown},
		{o.faults, b.faults},
		{o.decision, func(ctx context.Context) error { return o.profiled(func() error { return b.decision(ctx) }) }},
		{o.line, b.line},
		{o.crowd, b.crowd},
	} {
		if !mode.chosen {
			continue
		}
		if err := mode.measure(ctx); err != nil {
			return err
		}
	}
	return nil
}
