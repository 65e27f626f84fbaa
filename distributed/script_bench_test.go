package distributed

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

// BenchmarkScript is the script over one connection, beside PING; the server's
// own time for a call is told too.
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
	one := []group{{count: 1, costs: []int64{1, 1}}}
	many := []group{{count: 16, costs: []int64{1, 1}}}
	for _, c := range []struct {
		name   string
		limits []throttle.Limit
		groups []group
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

func benchmarkScript(b *testing.B, server *redistest.Server, client *redis.Client, limits []throttle.Limit, groups []group, pace *store.Pacing, told []byte) {
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		b.Fatal(err)
	}
	encoded, err := encodeLimits(resolved)
	if err != nil {
		b.Fatal(err)
	}
	r := request{
		tolerance: 10 * time.Millisecond, horizon: 100 * time.Millisecond, most: 16, limits: encoded,
		bounded: true, latest: time.Hour,
		channel: "weir:1:news:bench", lane: "lane",
	}
	if pace != nil {
		r.lesson = newLesson(*pace)
		if pace.Counted {
			encoded = encoded.learning()
			r.limits = encoded
		}
	}
	for _, g := range groups {
		g.costs = g.costs[:len(encoded.limits)]
		r.groups = append(r.groups, g)
	}
	lane := fmt.Sprintf("weir:1:{bench/%s}", b.Name())
	keys, ctx := r.keys(lane), context.Background()
	if err := script.Load(ctx, client).Err(); err != nil {
		b.Fatal(err)
	}
	server.Do("CONFIG", "RESETSTAT")
	var args []any
	for b.Loop() {
		args = r.args(args[:0])
		v, err := script.EvalSha(ctx, client, keys, args...).Result()
		if err != nil {
			b.Fatal(err)
		}
		got, err := r.decode(v)
		if err != nil {
			b.Fatal(err)
		}
		r.seen, r.period = got.seen, got.period
		if got.field.text != "" {
			r.field = got.field
		}
		if r.lesson != nil {
			r.lesson.ordinal, r.lesson.seen = got.heard.first+got.count(), got.heard.field
			r.lesson.place, r.lesson.word.Data, r.lesson.mind = got.heard.field.to, told, nil
			if got.heard.field.to-got.heard.field.from > condense {
				r.lesson.mind = make([]byte, 700)
			}
		}
	}
	b.ReportMetric(usecPerCall(server), "redis-µs/op")
	server.Do("DEL", lane)
}
