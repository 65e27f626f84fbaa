package distributed

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// A bench runs the script on a server, and nothing else of this package.
type bench struct {
	testing.TB
	client  *redis.Client
	lanes   atomic.Int64
	spelled bool // also usual calls are told in all words
}

// newBench starts a server.
func newBench(tb testing.TB) *bench {
	tb.Helper()
	return newBenchAt(tb, redistest.Start(tb).Addr())
}

func newBenchAt(tb testing.TB, addr string) *bench {
	b := &bench{TB: tb, client: redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})}
	tb.Cleanup(func() { b.client.Close() })
	return b
}

// persist has the server keep all lanes until the test ends. Their lives are in real
// time, and a test that tells the instants itself may be slower than that.
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

// lane returns the key of a lane that nobody has used.
func (b *bench) lane() string { return laneKey("test", fmt.Sprint(b.lanes.Add(1))) }

// call runs the script once.
func (b *bench) call(lane string, r *request) reply {
	b.Helper()
	r.spelled = r.spelled || b.spelled
	v, err := script.Run(context.Background(), b.client, r.keys(lane), r.args(nil)...).Result()
	if err != nil {
		b.Errorf("the script: %v\nof %v", err, r.args(nil))
		return reply{}
	}
	got, err := r.decode(v)
	if err != nil {
		b.Errorf("%v\nof %v", err, r.args(nil))
		return reply{next: make([]int64, len(r.limits.limits)), limits: make([]limitReply, len(r.limits.limits))}
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

func mustEncode(tb testing.TB, limits ...throttle.Limit) *encodedLimits {
	tb.Helper()
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		tb.Fatal(err)
	}
	encoded, err := encodeLimits(resolved)
	if err != nil {
		tb.Fatal(err)
	}
	return encoded
}

// A scripted is a limiter that asks the script for each decision: one caller,
// who tells the instants, and to whom nothing is promised.
type scripted struct {
	bench     *bench
	lane      string
	limits    []throttle.Limit
	encoded   *encodedLimits
	tolerance time.Duration
	seen      echo
	period    int64
	field     laneField
	epochs    map[throttle.Instant]int64 // under which permits were granted
	last      reply
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
	encoded, err := encodeLimits(resolved)
	if err != nil {
		return err
	}
	s.limits, s.encoded = resolved, encoded
	s.tolerance = throttle.Tolerance(resolved...)
	return nil
}

func wire(at throttle.Instant) int64   { return int64(at) / 1000 }
func unwire(at int64) throttle.Instant { return throttle.Instant(at * 1000) }

// call fills in what every request has, and takes in what every reply tells.
func (s *scripted) call(now throttle.Instant, r request) reply {
	r.now, r.tolerance, r.horizon = wire(now), s.tolerance, time.Second
	r.bounded, r.limits, r.seen, r.period, r.field = true, s.encoded, s.seen, s.period, s.field
	got := s.bench.call(s.lane, &r)
	if got.healed || got.lost || got.differs {
		s.bench.Errorf("the reply %+v tells of trouble", got)
	}
	s.seen, s.period, s.last = got.seen, got.period, got
	if got.field.text != "" {
		s.field = got.field
	}
	return got
}

func (s *scripted) report(now throttle.Instant, p report) { s.call(now, request{reports: []report{p}}) }

func (s *scripted) check(r throttle.Request) error {
	for i, l := range s.limits {
		if err := l.Check(int(costs{&r, len(s.limits), false}.of(i))); err != nil {
			return err
		}
	}
	if r.N < 0 {
		return fmt.Errorf("%d permits are negative", r.N)
	}
	return s.encoded.check(costs{&r, len(s.limits), false})
}

func (s *scripted) group(now throttle.Instant, r throttle.Request) []group {
	age := time.Duration(0)
	if r.Since != 0 {
		age = max(now.Sub(r.Since), 0)
	}
	return []group{{count: 1, age: age, costs: costs{&r, len(s.limits), false}.list()}}
}

func (s *scripted) Take(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	if err := s.check(r); err != nil {
		return 0, err
	}
	got := s.call(now, request{groups: s.group(now, r)})
	if len(got.permits) == 0 {
		return unwire(got.first), nil
	}
	at := unwire(got.permits[0].at)
	s.epochs[at] = got.seen.epoch
	return at, nil
}

// Forecast asks for permits dated before now: none is granted.
func (s *scripted) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	if s.check(r) != nil {
		return throttle.Forecast{At: throttle.Never}
	}
	return throttle.Forecast{At: unwire(s.call(now, request{latest: -time.Microsecond, groups: s.group(now, r)}).first)}
}

func (s *scripted) Refund(now, at throttle.Instant, r throttle.Request) {
	kind := reportRefund
	if at < now.Add(-s.tolerance) {
		kind = reportStale
	}
	if s.check(r) == nil {
		s.report(now, report{kind: kind, at: wire(at), epoch: s.epochs[at], costs: costs{&r, len(s.limits), false}.list()})
	}
}

func (s *scripted) Reconcile(now throttle.Instant, f throttle.Fact) {
	switch {
	case f.Resumed:
		s.report(now, report{kind: reportResume})
	case f.Until > 0:
		s.report(now, report{kind: reportPause, span: wire(f.Until) - wire(now)})
	}
}

func (s *scripted) Settle(now, at throttle.Instant, r, actual throttle.Request) {
	n := len(s.limits)
	s.report(now, report{kind: reportSettle, at: wire(at), costs: costs{&r, n, false}.list(), actual: costs{&actual, n, false}.list()})
}

func (s *scripted) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	if s.seen == (echo{}) {
		s.call(now, request{}) // the store knows nothing of limits that nobody claimed
	}
	old := s.limits
	if err := s.install(limits); err != nil {
		return err
	}
	heirs := make([]string, len(s.limits))
	for i, j := range throttle.Inherit(old, s.limits) {
		if j >= 0 {
			heirs[i] = old[j].Name
		}
	}
	s.report(now, report{kind: reportTune, force: true, heirs: heirs})
	return nil
}

func (s *scripted) Tolerance() time.Duration { return s.tolerance }

func (s *scripted) State(now throttle.Instant) throttle.State {
	got := s.call(now, request{state: true})
	st := throttle.State{
		Paused: max(unwire(got.paused).Sub(now), 0), Whole: got.paused == 0,
		Limits: make([]throttle.LimitState, len(s.limits)),
	}
	for i, l := range s.limits {
		told := got.limits[i]
		st.Whole = st.Whole && told.whole
		one := throttle.LimitState{Limit: l, Next: max(unwire(got.next[i]).Sub(now), 0)}
		if told.den > 0 {
			owed := (float64(told.owedMicros)*float64(told.den) + float64(told.owedFrac)) / float64(told.unit)
			one.Headroom, one.Utilization = float64(told.burst)-owed, owed/float64(told.burst)
		} else {
			one.Headroom, one.Utilization = float64(told.hand), float64(told.used)/float64(l.Permits)
		}
		st.Limits[i] = one
	}
	return st
}
