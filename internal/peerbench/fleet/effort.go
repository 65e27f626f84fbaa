package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An effort is a server's work: calls of each command, by the names of INFO commandstats, and their
// processor time.
type effort struct {
	calls map[string]int
	cpu   time.Duration
}

// effort returns the server's work since its start.
func (s *server) effort(ctx context.Context) (effort, error) {
	stats, err := s.admin.Info(ctx, "commandstats").Result()
	if err != nil {
		return effort{}, err
	}
	cpu, err := s.admin.Info(ctx, "cpu").Result()
	return effort{calls: commandCalls(stats), cpu: cpuTime(cpu)}, err
}

// commandCalls reads lines such as cmdstat_client|setinfo:calls=2,usec=3.
func commandCalls(info string) map[string]int {
	calls := make(map[string]int)
	for name, stats := range fields(info) {
		first, _, _ := strings.Cut(stats, ",")
		n, err := strconv.Atoi(strings.TrimPrefix(first, "calls="))
		if err == nil {
			calls[strings.TrimPrefix(name, "cmdstat_")] = n
		}
	}
	return calls
}

func cpuTime(info string) time.Duration {
	var total time.Duration
	for name, text := range fields(info) {
		seconds, err := strconv.ParseFloat(text, 64)
		if err == nil && (name == "used_cpu_user" || name == "used_cpu_sys") {
			total += time.Duration(seconds * float64(time.Second))
		}
	}
	return total
}

func fields(info string) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[name] = value
		}
	}
	return all
}

// since returns the work after an earlier reading.
func (e effort) since(before effort) effort {
	d := effort{calls: make(map[string]int), cpu: e.cpu - before.cpu}
	for name, n := range e.calls {
		d.calls[name] = n - before.calls[name]
	}
	return d
}

// scripts returns the calls of scripts.
func (e effort) scripts() float64 { return e.count("evalsha", "eval", "evalsha_ro", "eval_ro") }

// setup returns the commands of connections before their first useful one.
func (e effort) setup() float64 {
	return e.count("hello", "auth", "select", "client", "command", "script", "subscribe", "unsubscribe")
}

// commands returns everything, scripts and their commands, except setup and the measurement itself.
func (e effort) commands() float64 {
	all := 0
	for _, n := range e.calls {
		all += n
	}
	return float64(all) - e.setup() - e.count("info", "flushall")
}

// count returns the calls of commands and their subcommands.
func (e effort) count(names ...string) float64 {
	n := 0
	for name, calls := range e.calls {
		if command, _, _ := strings.Cut(name, "|"); slices.Contains(names, command) {
			n += calls
		}
	}
	return float64(n)
}
