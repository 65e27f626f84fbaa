package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
)

const redisHelp = `usage: weir redis -namespace NAME [flags] lanes
       weir redis -namespace NAME [flags] resume KEY
       weir redis -namespace NAME [flags] forget KEY

lanes prints what Redis holds of the lanes of a namespace: replicas that called lately, limits in
force, pauses, learned rates, and calls in flight. It changes nothing.

resume ends the pause of a lane, in all replicas. A server that still refuses pauses it again.
forget makes all replicas forget what they have learned of a lane, and ends its pause.
Both ask before. KEY is the key of the lane, as lanes prints it.

  weir redis -addr redis:6379 -namespace billing lanes
`

// settings are the flags of the command.
type settings struct {
	addr, namespace, user, passwordFile string
	cluster, tls, yes                   bool
	db                                  int
	timeout                             time.Duration
}

// redisCommand runs the command.
func redisCommand(ctx context.Context, args []string, c console) error {
	var s settings
	flags := flag.NewFlagSet("redis", flag.ContinueOnError)
	flags.StringVar(&s.addr, "addr", "localhost:6379", "`host:port` of Redis, or of nodes of a Cluster with commas between them")
	flags.StringVar(&s.namespace, "namespace", "", "`name` with which the store was made")
	flags.StringVar(&s.user, "user", "", "`name` of the user of Redis")
	flags.StringVar(&s.passwordFile, "password-file", "", "`file` that holds the password")
	flags.BoolVar(&s.cluster, "cluster", false, "the nodes are those of a Redis Cluster")
	flags.BoolVar(&s.tls, "tls", false, "connect with TLS")
	flags.IntVar(&s.db, "db", 0, "`number` of the database")
	flags.DurationVar(&s.timeout, "timeout", 10*time.Second, "longest `time` to wait for Redis")
	flags.BoolVar(&s.yes, "yes", false, "do not ask before a change")
	rest, err := parse(flags, args, c, redisHelp)
	if err != nil {
		return err
	}
	if s.namespace == "" {
		return usagef("no -namespace")
	}
	verb, keys := "", []string(nil)
	if len(rest) > 0 {
		verb, keys = rest[0], rest[1:]
	}
	do, changes := operations[verb]
	switch {
	case verb != "lanes" && !changes:
		return usagef("%q is none of lanes, resume and forget", verb)
	case changes && len(keys) != 1:
		return usagef("%s of %d keys, want one", verb, len(keys))
	case !changes && len(keys) > 0:
		return usagef("lanes takes no key: %q", keys)
	}
	if err := s.check(); err != nil {
		return err
	}
	rdb, err := s.client()
	if err != nil {
		return err
	}
	defer rdb.Close()
	if !changes {
		lanes, err := s.lanes(ctx, rdb)
		if len(lanes) == 0 && err != nil {
			return err
		}
		return cmp.Or(printLanes(c, lanes), err)
	}
	return s.change(ctx, c, rdb, change{verb, keys[0], do})
}

// operations change a lane.
var operations = map[string]func(*weir.Transport, string) error{
	"resume": (*weir.Transport).Resume,
	"forget": (*weir.Transport).Forget,
}

// check returns what is wrong with the flags.
func (s settings) check() error {
	addrs := strings.Split(s.addr, ",")
	for _, addr := range addrs {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return usagef("-addr %q: %w", s.addr, err)
		}
	}
	switch {
	case len(addrs) > 1 && !s.cluster:
		return usagef("%d addresses without -cluster", len(addrs))
	case s.db < 0:
		return usagef("-db %d is negative", s.db)
	case s.db > 0 && s.cluster:
		return usagef("-db %d with -cluster, which has database 0 alone", s.db)
	case s.timeout <= 0:
		return usagef("-timeout %v is not positive", s.timeout)
	}
	return nil
}

// client returns a client of Redis.
func (s settings) client() (redis.UniversalClient, error) {
	logging.Disable() // errors are returned
	opt := &redis.UniversalOptions{Addrs: strings.Split(s.addr, ","), Username: s.user, DB: s.db, IsClusterMode: s.cluster}
	if s.passwordFile != "" {
		text, err := os.ReadFile(s.passwordFile)
		if err != nil {
			return nil, err
		}
		opt.Password = strings.TrimRight(string(text), "\r\n")
	}
	if s.tls {
		opt.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return redis.NewUniversalClient(opt), nil
}

// lanes returns the lanes of the namespace. The error names the server.
func (s settings) lanes(ctx context.Context, rdb redis.UniversalClient) ([]distributed.Lane, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	lanes, err := distributed.Lanes(ctx, rdb, s.namespace)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("asking Redis at %s: no answer in %v: %w", s.addr, s.timeout, err)
	case err != nil:
		err = fmt.Errorf("asking Redis at %s: %w", s.addr, err)
	}
	return lanes, err
}

// printLanes prints a line for each lane.
func printLanes(c console, lanes []distributed.Lane) error {
	if len(lanes) == 0 {
		return say(c, "no lanes")
	}
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "lane\treplicas\tlimits\tpaused for\tlearned\tin flight")
	for _, l := range lanes {
		limits := make([]string, len(l.Limits))
		for i, limit := range l.Limits {
			limits[i] = limit.String()
			if label := limit.Label(); label != limit.Name { // a name that weir made says nothing more
				limits[i] = label
			}
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\n", readableKey(l.Key), l.Replicas, cmp.Or(strings.Join(limits, ", "), "-"),
			dash(l.Paused > 0, "%v", readable(l.Paused)), dash(l.Learned > 0, "%.3g/s", l.Learned), dash(l.MaxSlots > 0, "%d of %d", l.Slots, l.MaxSlots))
	}
	return table.Flush()
}

// dash returns the text, or "-" if it is empty.
func dash(is bool, format string, args ...any) string {
	if !is {
		return "-"
	}
	return fmt.Sprintf(format, args...)
}

// readableKey returns a key unchanged, or quoted if a terminal would not show it unchanged.
func readableKey(key string) string {
	if quoted := strconv.Quote(key); key == "" || quoted != `"`+key+`"` {
		return quoted
	}
	return key
}

// cutEscape matches the end of a key that [distributed.Lanes] shortened within an escaped byte. It is
// the key of no lane. Any other shortened key names its lane.
var cutEscape = regexp.MustCompile(`%[0-9a-f]?~[0-9a-f]{32}$`)

// A change is an operator's action on a lane.
type change struct {
	verb, key string
	do        func(*weir.Transport, string) error
}

// change changes an existing lane, if the operator agrees.
func (s settings) change(ctx context.Context, c console, rdb redis.UniversalClient, ch change) error {
	lanes, err := s.lanes(ctx, rdb)
	i := slices.IndexFunc(lanes, func(l distributed.Lane) bool { return l.Key == ch.key })
	if i < 0 { // it may be quoted, as printed
		i = slices.IndexFunc(lanes, func(l distributed.Lane) bool { return readableKey(l.Key) == ch.key })
	}
	switch {
	case i < 0 && err != nil:
		return fmt.Errorf("%s %q: lane not found: %w", ch.verb, ch.key, err)
	case i < 0:
		return fmt.Errorf("no lane %q in namespace %q", ch.key, s.namespace)
	}
	if ch.key = lanes[i].Key; cutEscape.MatchString(ch.key) {
		return fmt.Errorf("lane %q: its key is too long, and its end is not known: %s it by its whole key in Go", ch.key, ch.verb)
	}
	if err := printLanes(c, lanes[i:i+1]); err != nil {
		return err
	}
	if !s.yes {
		fmt.Fprintf(c.out, "%s this lane in all replicas? [y/N] ", ch.verb)
		answer, _ := bufio.NewReader(c.in).ReadString('\n')
		if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
			return fmt.Errorf("%s %q: not confirmed, nothing changed", ch.verb, ch.key)
		}
	}
	if err := s.send(rdb, ch); err != nil {
		return err
	}
	return s.await(ctx, c, rdb, ch)
}

// send changes the lane as a replica that comes and leaves at once.
func (s settings) send(rdb redis.UniversalClient, ch change) error {
	store := distributed.New(rdb, s.namespace)
	store.Logger = slog.New(slog.DiscardHandler) // errors are returned
	store.FirstDeadline, store.Deadline, store.MaxDeadline = s.timeout, s.timeout, s.timeout
	defer store.Close() //nolint:errcheck // it returns none
	transport := &weir.Transport{Store: store, Logger: store.Logger}
	defer transport.Close()
	if err := ch.do(transport, ch.key); err != nil {
		return err
	}
	for end := time.Now().Add(s.timeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		switch state := transport.Snapshot()[0].Store; {
		case state.Failures > 0:
			return fmt.Errorf("%s %q: it may not have been done: Redis fails: %s", ch.verb, ch.key, state.Cause)
		case state.Calls > 0:
			return nil
		}
	}
	return fmt.Errorf("%s %q: it may not have been done: Redis does not answer", ch.verb, ch.key)
}

// await waits until Redis has the change.
func (s settings) await(ctx context.Context, c console, rdb redis.UniversalClient, ch change) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		lanes, err := distributed.Lanes(ctx, rdb, s.namespace)
		i := slices.IndexFunc(lanes, func(l distributed.Lane) bool { return l.Key == ch.key })
		switch {
		case i < 0 && err != nil:
			return fmt.Errorf("%s %q: it may not have been done: %w", ch.verb, ch.key, err)
		case i < 0 || lanes[i].Paused == 0:
			return say(c, "done")
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s %q: the lane is still paused for %v", ch.verb, ch.key, readable(lanes[i].Paused))
		}
	}
}
