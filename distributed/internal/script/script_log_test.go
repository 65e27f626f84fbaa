package script

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// fill writes a full log with one run for each permit, the last of them now. They are spread evenly
// over two spans, so half of them have left the last one.
func (c *caller) fill(now int64) (runs int) {
	b, limit := c.bench, c.limits.Limits[0]
	runs = limit.limit.Permits
	per := limit.limit.Per.Microseconds()
	step := 2 * per / int64(runs)
	const atOnce = 50_000 // runs that one call adds, well within a client's timeout on a busy machine
	for left := runs; left > 0; left -= atOnce {
		b.do("EVAL", `for i = ARGV[1] - 1, ARGV[2], -1 do redis.call('RPUSH', KEYS[1], ('%.0f 1'):format(ARGV[3] - i * ARGV[4])) end`,
			1, logKey(c.lane, limit.limit.Name), left, max(left-atOnce, 0), now, step)
	}
	b.do("HSET", c.lane, "lane", fmt.Sprintf("%d 0 0 %d 1 1 %d", now-2*per, now/5_000_000, now+2*per), "at", now,
		limit.field, fmt.Sprintf("%s;%d %d %d 0 %d", limit.claim, now, runs, runs, now))
	return runs
}

// A call is short whatever the log holds: Redis serves no other client meanwhile.
func TestALargeLogIsAskedInShortCalls(t *testing.T) {
	server := redistest.Start(t)
	b := newBenchAt(t, server.Addr())
	c := b.caller(b.lane(), throttle.SlidingLog(100_000, 30*time.Second))
	now := int64(dawn)
	runs := c.fill(now)
	const calls = 10
	before := spent(server)
	for range calls {
		now += second / 2
		r := &Request{
			now: now, Tolerance: asTolerance, Horizon: second, Most: 1, Limits: c.limits, Groups: c.line(3), State: true,
			Reports: []Report{{Kind: ReportRefund, At: now - 20*second, Costs: []int64{2}}, {Kind: ReportSettle, At: now - 10*second, Costs: []int64{2}, Actual: []int64{1}}},
		}
		if got := b.call(c.lane, r); got.Healed || len(got.Permits) != 1 || got.Permits[0].Count != 3 {
			t.Fatalf("%+v, want three permits", got)
		}
	}
	if took := (spent(server) - before) / calls; took == 0 || took > 50*time.Millisecond {
		t.Errorf("a log of %d runs: %v of the processor for a call, want 50 ms at most", runs, took)
	}
	if left := b.do("LLEN", logKey(c.lane, "requests-0")).(int64); left > int64(runs-calls*100) {
		t.Errorf("the log has %d runs of %d after %d calls, want those forgotten that left its span", left, runs, calls)
	}
}

// A log of many permits holds no more runs than one call can count, and the limit is still
// enforced.
func TestALogOfManyPermitsHoldsFewRuns(t *testing.T) {
	b := newBench(t)
	const permits = 5000
	c := b.caller(b.lane(), throttle.SlidingLog(permits, 10*time.Second))
	now, granted := int64(dawn), 0
	for range permits / 10 {
		now += second / 1000
		for _, p := range c.ask(now, c.line(10)).Permits {
			granted += p.Count
		}
	}
	if next := c.ask(now, nil).Next[0]; granted != permits || next < dawn+10*second || next > dawn+10*second+4000 {
		t.Errorf("%d permits, and the next after %d µs, want %d and a span", granted, next-dawn, permits)
	}
	if runs := b.do("LLEN", logKey(c.lane, "requests-0")).(int64); runs > 250 { // of 2.4 ms each
		t.Errorf("%d runs in half a second, want 250 at most", runs)
	}
}

// BenchmarkLog is a call on a full log, half of which has left the span.
func BenchmarkLog(b *testing.B) {
	server := redistest.Start(b)
	bench := newBenchAt(b, server.Addr())
	for _, permits := range []int{30_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(permits), func(b *testing.B) {
			c := bench.caller(bench.lane(), throttle.SlidingLog(permits, 30*time.Second))
			now := time.Now().UnixMicro()
			c.fill(now)
			server.Do("CONFIG", "RESETSTAT")
			for b.Loop() {
				now += 1000
				bench.call(c.lane, &Request{now: now, Tolerance: asTolerance, Horizon: second, Most: 1, Limits: c.limits, Groups: c.line(1), State: true})
			}
			b.ReportMetric(usecPerCall(server), "redis-µs/op")
			memory, _ := bench.client.MemoryUsage(b.Context(), logKey(c.lane, "requests-0"), 0).Result()
			b.ReportMetric(float64(memory)/1024, "KiB")
		})
	}
}
