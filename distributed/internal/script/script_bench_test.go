package script

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// BenchmarkScript runs the script over one connection, beside PING. It also reports the server's
// own time for a call.
func BenchmarkScript(b *testing.B) {
	server := redistest.Start(b)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, PoolSize: 1})
	b.Cleanup(func() { client.Close() })
	ctx := context.Background()
	b.Run("PING", func(b *testing.B) {
		for b.Loop() {
			client.Ping(ctx)
		}
	})
	one := []Group{{Count: 1, Costs: []int64{1, 1}}}
	many := []Group{{Count: 16, Costs: []int64{1, 1}}}
	for _, c := range []struct {
		name   string
		limits []throttle.Limit
		groups []Group
	}{
		{"none", nil, nil},
		{"bucket", []throttle.Limit{throttle.TokenBucket(100_000_000, time.Second, 1_000_000)}, one},
		{"bucket, saturated", []throttle.Limit{throttle.TokenBucket(100, time.Second, 1)}, one},
		{"bucket, run of 16", []throttle.Limit{throttle.TokenBucket(100_000, time.Second, 1)}, many},
		{"two buckets", []throttle.Limit{throttle.TokenBucket(100_000_000, time.Second, 1_000_000), throttle.LeakyBucket(10_000_000, time.Second)}, one},
		{"fixed", []throttle.Limit{throttle.FixedWindow(100_000_000, time.Second)}, one},
		{"sliding", []throttle.Limit{throttle.SlidingWindow(100_000_000, time.Second)}, one},
		{"log", []throttle.Limit{throttle.SlidingLog(10_000, time.Second)}, one},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkScript(b, server, client, c.limits, c.groups, nil, nil) })
	}
	for _, c := range []struct {
		name   string
		limits []throttle.Limit
		pace   store.Pacing
		told   []byte
	}{
		{"learning, bucket", []throttle.Limit{throttle.TokenBucket(100_000_000, time.Second, 1_000_000)}, store.Pacing{}, nil},
		{"learned", nil, store.Pacing{Counted: true, Interval: time.Microsecond}, nil},
		{"learned, bucket", []throttle.Limit{throttle.TokenBucket(100_000_000, time.Second, 1_000_000)}, store.Pacing{Counted: true, Interval: time.Microsecond}, nil},
		{"learned, telling", nil, store.Pacing{Counted: true, Interval: time.Microsecond}, make([]byte, 40)},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkScript(b, server, client, c.limits, one, &c.pace, c.told) })
	}
}

func benchmarkScript(b *testing.B, server *redistest.Server, client *redis.Client, limits []throttle.Limit, groups []Group, pace *store.Pacing, told []byte) {
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		b.Fatal(err)
	}
	encoded, err := EncodeLimits(resolved)
	if err != nil {
		b.Fatal(err)
	}
	r := Request{
		Tolerance: 10 * time.Millisecond, Horizon: 100 * time.Millisecond, Most: 16, Limits: encoded,
		Latest: time.Hour, Channel: "weir:1:messages:bench", Lane: "lane",
	}
	if pace != nil {
		r.Update = NewUpdate(*pace)
		if pace.Counted {
			encoded = encoded.Learning()
			r.Limits = encoded
		}
	}
	for _, g := range groups {
		g.Costs = g.Costs[:len(encoded.Limits)]
		r.Groups = append(r.Groups, g)
	}
	lane := fmt.Sprintf("weir:1:{bench/%s}", b.Name())
	keys, ctx := r.Keys(lane), context.Background()
	if err := script.Load(ctx, client).Err(); err != nil {
		b.Fatal(err)
	}
	server.Do("CONFIG", "RESETSTAT")
	var args []any
	for b.Loop() {
		args = r.Args(args[:0])
		v, err := script.EvalSha(ctx, client, keys, args...).Result()
		if err != nil {
			b.Fatal(err)
		}
		got, err := r.Decode(v)
		if err != nil {
			b.Fatal(err)
		}
		r.Seen, r.Period = got.Seen, got.Period
		if got.Field.Text != "" {
			r.Field = got.Field
		}
		if r.Update != nil {
			r.Update.Ordinal, r.Update.Seen = got.Learned.First+got.Count(), got.Learned.Field
			r.Update.Place, r.Update.Entry.Data, r.Update.Snapshot = got.Learned.Field.To, told, nil
			if got.Learned.Field.To-got.Learned.Field.From > Condense {
				r.Update.Snapshot = make([]byte, 700)
			}
		}
	}
	b.ReportMetric(usecPerCall(server), "redis-µs/op")
	server.Do("DEL", lane)
}
