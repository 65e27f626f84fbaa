package script

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// The scripts, as a client of Redis runs them.
var (
	script      = redis.NewScript(scriptSource)
	slotsScript = redis.NewScript(slotsSource)
)

// A bench runs the scripts on a server without the rest of this package.
type bench struct {
	testing.TB
	client  *redis.Client
	lanes   atomic.Int64
	spelled bool // usual calls are spelled out, too
}

// newBench starts a server.
func newBench(tb testing.TB) *bench {
	tb.Helper()
	return newBenchAt(tb, redistest.Start(tb).Addr())
}

func newBenchAt(tb testing.TB, addr string) *bench {
	b := &bench{TB: tb, client: redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: time.Minute})} // nothing here waits for a timeout
	tb.Cleanup(func() { b.client.Close() })
	return b
}

// persist makes the server keep all lanes until the test ends. They expire in real time, and a test
// with its own instants may be slower than that.
func (b *bench) persist() {
	const all = "for _, key in ipairs(redis.call('keys', '*')) do redis.call('persist', key) end"
	ctx, cancel := context.WithCancel(context.Background())
	var persisting sync.WaitGroup
	b.Cleanup(persisting.Wait)
	b.Cleanup(cancel)
	persisting.Go(func() {
		for ctx.Err() == nil {
			_ = b.client.Eval(ctx, all, nil).Err()
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
}

// laneKey returns the key of a lane's state.
func laneKey(namespace, lane string) string { return KeyOf(Layout, namespace, lane) }

// lane returns the key of a lane that was never used.
func (b *bench) lane() string { return laneKey("test", fmt.Sprint(b.lanes.Add(1))) }

// call runs the script once.
func (b *bench) call(lane string, r *Request) Reply {
	b.Helper()
	r.spelled = r.spelled || b.spelled
	v, err := script.Run(context.Background(), b.client, r.Keys(lane), r.Args(nil)...).Result()
	if err != nil {
		b.Errorf("the script: %v\nof %v", err, r.Args(nil))
		return Reply{}
	}
	got, err := r.Decode(v)
	if err != nil {
		b.Errorf("%v\nof %v", err, r.Args(nil))
		return Reply{Next: make([]int64, len(r.Limits.Limits)), Limits: make([]LimitReply, len(r.Limits.Limits))}
	}
	return got
}

// do sends a command.
func (b *bench) do(args ...any) any {
	b.Helper()
	v, err := b.client.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		b.Fatalf("%v: %v", args, err)
	}
	return v
}

func mustEncode(tb testing.TB, limits ...throttle.Limit) *EncodedLimits {
	tb.Helper()
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		tb.Fatal(err)
	}
	encoded, err := EncodeLimits(resolved)
	if err != nil {
		tb.Fatal(err)
	}
	return encoded
}

// A scripted is a limiter that asks the script for each decision, as one caller that sends the
// instant and is promised no permits.
type scripted struct {
	bench     *bench
	lane      string
	limits    []throttle.Limit
	encoded   *EncodedLimits
	tolerance time.Duration
	seen      Echo
	period    int64
	field     LaneField
	epochs    map[throttle.Instant]int64 // of the grants
	last      Reply
}

// limiter makes one of a new lane.
func (b *bench) limiter(limits ...throttle.Limit) throttle.Limiter {
	s := &scripted{bench: b, lane: b.lane(), epochs: make(map[throttle.Instant]int64)}
	if err := s.install(limits); err != nil {
		b.Fatal(err)
	}
	return s
}

func (s *scripted) install(limits []throttle.Limit) error {
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		return err
	}
	encoded, err := EncodeLimits(resolved)
	if err != nil {
		return err
	}
	s.limits, s.encoded = resolved, encoded
	s.tolerance = throttle.Tolerance(resolved...)
	return nil
}

func wire(at throttle.Instant) int64   { return int64(at) / 1000 }
func unwire(at int64) throttle.Instant { return throttle.Instant(at * 1000) }

// call fills in the common part of a request, and applies that of a reply.
func (s *scripted) call(now throttle.Instant, r Request) Reply {
	r.now, r.Tolerance, r.Horizon = wire(now), s.tolerance, time.Second
	r.Limits, r.Seen, r.Period, r.Field = s.encoded, s.seen, s.period, s.field
	got := s.bench.call(s.lane, &r)
	if got.Healed || got.Lost || got.Differs {
		s.bench.Errorf("the reply %+v reports trouble", got)
	}
	s.seen, s.period, s.last = got.Seen, got.Period, got
	if got.Field.Text != "" {
		s.field = got.Field
	}
	return got
}

func (s *scripted) report(now throttle.Instant, p Report) { s.call(now, Request{Reports: []Report{p}}) }

func (s *scripted) check(r throttle.Request) error {
	for i, l := range s.limits {
		if err := l.CheckRequest(r, i); err != nil {
			return err
		}
	}
	if r.N < 0 {
		return fmt.Errorf("%d permits are negative", r.N)
	}
	return s.encoded.Check(s.encoded.Costs(&r, nil))
}

func (s *scripted) permits(r throttle.Request) []int64 {
	return s.encoded.Permits(s.encoded.Costs(&r, nil))
}

func (s *scripted) group(now throttle.Instant, r throttle.Request) []Group {
	age := time.Duration(0)
	if r.Since != 0 {
		age = max(now.Sub(r.Since), 0)
	}
	return []Group{{Count: 1, Age: age, Costs: s.encoded.Costs(&r, nil)}}
}

func (s *scripted) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	if err := s.check(r); err != nil {
		return throttle.Grant{}, err
	}
	got := s.call(now, Request{Groups: s.group(now, r)})
	if len(got.Permits) == 0 {
		return throttle.Grant{At: unwire(got.First)}, nil
	}
	at := unwire(got.Permits[0].At)
	s.epochs[at] = got.Seen.Epoch
	return throttle.Grant{At: at}, nil
}

// Forecast asks for permits dated before now, so none is granted.
func (s *scripted) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	if s.check(r) != nil {
		return throttle.Forecast{At: throttle.Never}
	}
	return throttle.Forecast{At: unwire(s.call(now, Request{Latest: -time.Microsecond, Groups: s.group(now, r)}).First)}
}

func (s *scripted) Refund(now throttle.Instant, g throttle.Grant, r throttle.Request) {
	kind := ReportRefund
	if g.At < now.Add(-s.tolerance) {
		kind = ReportStale
	}
	if s.check(r) == nil {
		s.report(now, Report{Kind: kind, At: wire(g.At), Epoch: s.epochs[g.At], Costs: s.permits(r)})
	}
}

func (s *scripted) Reconcile(now throttle.Instant, f throttle.Fact) {
	switch {
	case f.Resumed:
		s.report(now, Report{Kind: ReportResume})
	case f.Until > 0:
		s.report(now, Report{Kind: ReportPause, Span: wire(f.Until) - wire(now)})
	}
}

func (s *scripted) Settle(now throttle.Instant, g throttle.Grant, r, actual throttle.Request) {
	s.report(now, Report{Kind: ReportSettle, At: wire(g.At), Costs: s.permits(r), Actual: s.permits(actual)})
}

func (s *scripted) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	if s.seen == (Echo{}) {
		s.call(now, Request{}) // the store does not know limits before a claim
	}
	old := s.limits
	if err := s.install(limits); err != nil {
		return err
	}
	heirs := make([]string, len(s.limits))
	for i, j := range throttle.Inherit(old, s.limits) {
		if j >= 0 {
			heirs[i] = replaced(j)
		}
	}
	for j, o := range old {
		s.rename(o.Name, replaced(j))
	}
	s.report(now, Report{Kind: ReportTune, Heirs: heirs})
	for j := range old {
		s.bench.do("HDEL", s.lane, "="+replaced(j))
		s.bench.do("DEL", logKey(s.lane, replaced(j)))
	}
	return nil
}

// replaced names a limit that was replaced. Names are unique, so limits can trade theirs. No caller
// claims the old one, so the new ones are in force at once.
func replaced(i int) string { return fmt.Sprint("replaced-", i) }

// rename gives a limit of the store another name.
func (s *scripted) rename(from, to string) {
	if text := s.bench.do("HGET", s.lane, "="+from); text != nil {
		s.bench.do("HSET", s.lane, "="+to, text)
		s.bench.do("HDEL", s.lane, "="+from)
	}
	if s.bench.do("EXISTS", logKey(s.lane, from)) == int64(1) {
		s.bench.do("RENAME", logKey(s.lane, from), logKey(s.lane, to))
	}
}

func (s *scripted) Tolerance() time.Duration { return s.tolerance }

// weighs reports whether a sliding window still counts permits that do not show in its state.
func (s *scripted) weighs(now throttle.Instant, l throttle.Limit) bool {
	text, _ := s.bench.do("HGET", s.lane, "="+l.Name).(string)
	_, counts, _ := strings.Cut(text, ";")
	var claimed, start, this, before int64
	_, err := fmt.Sscan(counts, &claimed, &start, &this, &before)
	sliding := err == nil && l.Algorithm == throttle.AlgorithmSlidingWindow
	return sliding && (this > 0 && now < unwire(start).Add(2*l.Per) || before > 0 && now < unwire(start).Add(l.Per))
}

func (s *scripted) State(now throttle.Instant) throttle.State {
	got := s.call(now, Request{State: true})
	st := throttle.State{
		Paused: max(unwire(got.Paused).Sub(now), 0), Whole: got.Paused == 0,
		Limits: make([]throttle.LimitState, len(s.limits)),
	}
	for i, l := range s.limits {
		state := got.Limits[i]
		one := throttle.LimitState{Limit: l, Next: max(unwire(got.Next[i]).Sub(now), 0)}
		if state.den > 0 {
			owed := (float64(state.owedMicros)*float64(state.den) + float64(state.owedFrac)) / float64(state.unit)
			one.Headroom, one.Utilization = float64(state.Burst)-owed, owed/float64(state.Burst)
		} else {
			one.Headroom, one.Utilization = float64(state.Hand), float64(state.Used)/float64(l.Permits)
		}
		st.Whole = st.Whole && one.Utilization == 0 && !s.weighs(now, l)
		st.Limits[i] = one
	}
	return st
}
