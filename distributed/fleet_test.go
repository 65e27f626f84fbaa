package distributed_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// patience is how long a fleet may take for what it does in a moment where the
// machine does nothing else.
const patience = 15 * time.Second

// A plan says how a fleet is made. Each replica has a way to Redis of its own,
// through a proxy, where Redis is a single server.
type plan struct {
	config
	server    *redistest.Server // nil: one is started, unless Redis.Addrs says where Redis is
	members   int               // replicas in this process
	processes int               // and in processes of their own
	prepare   func(r *replica)  // nil: members are left as they are; called before they start
}

// A fleet is replicas that share limits, and the journal of what left.
type fleet struct {
	t      *testing.T
	plan   plan
	seed   uint64
	random *rand.Rand
	server *redistest.Server // nil: it is no single one
	links  []*redistest.Proxy

	members   []*replica
	processes []*process
	journal   journal
	known     throttle.Instant // since when the replicas know of each other
	forgot    bool             // Redis lost its state
	stopped   bool
	void      uint64 // permits that nobody took in time
	unknown   uint64 // permits of calls without an answer
}

// The defaults of a plan: a rate at which the tolerance adds two permits, and a
// burst that stands out from them.
const (
	rate  = 200
	burst = 20
)

// newFleet starts a fleet, which ends with the test.
func newFleet(t *testing.T, p plan) *fleet {
	t.Helper()
	f := &fleet{t: t, plan: p, server: p.server}
	f.seed = seeded(t)
	f.random = rand.New(rand.NewPCG(f.seed, 1))
	c := &f.plan.config
	c.Namespace, c.Lane, c.Seed = cmp.Or(c.Namespace, "fleet"), cmp.Or(c.Lane, "lane"), f.seed
	if c.Limits == nil {
		c.Limits = []throttle.Limit{throttle.TokenBucket(rate, time.Second, burst)}
	}
	if c.Callers == 0 && c.Arrivals == 0 {
		c.Callers = 6
	}
	if len(c.Redis.Addrs) == 0 && f.server == nil {
		f.server = redistest.Start(t)
	}
	t.Cleanup(f.stop)
	for range p.members {
		f.join(f.way())
	}
	for range p.processes {
		f.launch(f.way())
	}
	return f
}

// seeded returns the seed of the test, from the environment or a new one, and
// says how to have it again.
func seeded(t *testing.T) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("WEIR_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again: WEIR_SEED=%d go test -race -run '^%s$' ./distributed", seed, strings.ReplaceAll(t.Name(), "/", "$/^"))
		}
	})
	return seed
}

// way returns the config of one more replica, with a proxy of its own where
// Redis is a single server.
func (f *fleet) way() config {
	f.t.Helper()
	c := f.plan.config
	if f.server != nil {
		p := redistest.NewProxy(f.t, f.server.Addr())
		f.links = append(f.links, p)
		c.Redis.Addrs = []string{p.Addr()}
	}
	c.Seed += uint64(len(f.links))
	return c
}

// join adds a replica in this process.
func (f *fleet) join(c config) *replica { return f.adopt(c, c.Redis.client()) }

// adopt adds a replica in this process over a client.
func (f *fleet) adopt(c config, given redis.UniversalClient) *replica {
	f.t.Helper()
	r := open(c, len(f.members), given, f.journal.note)
	f.members = append(f.members, r)
	if f.plan.prepare != nil {
		f.plan.prepare(r)
	}
	if err := r.start(); err != nil {
		f.t.Fatal(err)
	}
	return r
}

// launch adds a process.
func (f *fleet) launch(c config) *process {
	f.t.Helper()
	p := launch(f.t, c, 1000*(1+len(f.processes)), f.journal.note)
	f.processes = append(f.processes, p)
	return p
}

// replicas returns how many replicas there are.
func (f *fleet) replicas() int {
	return len(f.members) + len(f.processes)*max(f.plan.Together, 1)
}

// states asks all replicas how they fare.
func (f *fleet) states() []throttle.StoreState {
	var all []throttle.StoreState
	for _, r := range f.members {
		all = append(all, r.state())
	}
	for _, p := range f.processes {
		all = append(all, p.states()...)
	}
	return all
}

// patiently returns a config of a store that waits for Redis as long as a busy
// machine may take, so that nothing is lost where nothing is broken.
func patiently(limits ...throttle.Limit) config {
	return config{Limits: limits, Deadline: time.Second, MaxDeadline: time.Second}
}

func now() throttle.Instant { return throttle.InstantOf(time.Now()) }

// pass lets some time pass: more where long runs are wished.
func (f *fleet) pass(d time.Duration) {
	if long {
		d *= 3
	}
	time.Sleep(d)
}

// long says whether tests run longer than a change has time for.
var long = os.Getenv("WEIR_LONG") != ""

// await asks every few milliseconds whether what is waited for has come, and
// returns how long that took.
func await(t *testing.T, what string, come func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !come() {
		if time.Since(began) > patience {
			t.Fatalf("waited %v for %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

// steady returns when all replicas know of each other and depart.
func (f *fleet) steady() {
	f.t.Helper()
	n := f.replicas()
	defer f.describe()
	await(f.t, "the replicas to know each other", func() bool {
		return !slices.ContainsFunc(f.states(), func(s throttle.StoreState) bool { return s.Lost || s.Replicas < n })
	})
	f.known = now()
}

// back returns when no replica has lost its store and the fleet departs at half
// its rate or more.
func (f *fleet) back() throttle.Instant {
	f.t.Helper()
	const lately = 200 * time.Millisecond
	defer f.describe()
	took := await(f.t, "the fleet to be back", func() bool {
		at := now()
		recent := f.journal.count(at.Add(-lately), at)
		return float64(recent) >= rateOf(f.plan.Limits[0])*lately.Seconds()/2 &&
			!slices.ContainsFunc(f.states(), func(s throttle.StoreState) bool { return s.Lost })
	})
	f.t.Logf("back after %v", took.Round(time.Millisecond))
	return now()
}

// describe logs how the replicas fare where the test has failed.
func (f *fleet) describe() {
	f.t.Helper()
	if f.t.Failed() {
		for i, s := range f.states() {
			f.t.Logf("replica %d: %+v", i, s)
		}
	}
}

// stop ends the fleet, and fails the test where a caller stays, or stayed
// beyond its deadline.
func (f *fleet) stop() {
	f.t.Helper()
	if f.stopped {
		return
	}
	f.stopped = true
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, r := range f.members {
			r.halt()
		}
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		f.t.Fatal("callers stay after they were sent away")
	}
	for _, s := range f.states() {
		f.void += s.Void
		f.unknown += s.Unknown
	}
	for i, r := range f.members {
		r.close()
		if over := time.Duration(r.overdue.Load()); over > time.Second {
			f.t.Errorf("replica %d: a caller came back %v after its deadline", i, over)
		}
	}
	for _, p := range f.processes {
		p.Leave()
	}
}

// judge ends the fleet and judges all that left: as the vendor saw it, and as
// Redis promised it, where nothing is late.
func (f *fleet) judge(spells ...spell) {
	f.t.Helper()
	f.stop()
	if stray := f.journal.stray(spells); stray > 0 {
		f.t.Logf("%d departures under the policy for a loss though no fault was made", stray)
	}
	at := f.journal.instants(func(d departure) bool { return !d.Local || d.foreseen(spells) })
	x := f.x()
	for _, l := range f.plan.Limits {
		judgeLimit(f.t, l, at, x, spells...)
	}
	f.judgePromises(spells)
	f.judgeLocal()
	f.t.Logf("X is %v; %d permits void, %d unknown", x, f.void, f.unknown)
}

// x returns the permit tolerance and the spread: what is assumed of it, or more
// where this machine was slower. The clock of Redis is that of the replicas, so
// that it can be told.
func (f *fleet) x() time.Duration {
	return max(tolerance(f.t, f.plan.Limits)+spread, f.journal.late(func(d departure) bool { return !d.Local }))
}

func tolerance(t *testing.T, limits []throttle.Limit) time.Duration {
	t.Helper()
	l, err := throttle.Local{}.Limiter("", limits...)
	if err != nil {
		t.Fatal(err)
	}
	return l.(throttle.Tolerant).Tolerance()
}

// judgePromises judges when the permits of what left were due, by the clock of
// Redis: a bucket keeps its bound there to the microsecond, however late the
// machine lets anybody go.
func (f *fleet) judgePromises(spells []spell) {
	f.t.Helper()
	due := f.journal.dues(func(d departure) bool { return !d.Local })
	for i := range spells {
		spells[i].rate = min(spells[i].rate, 0)
	}
	for _, l := range f.plan.Limits {
		if l.Algorithm == throttle.AlgorithmTokenBucket || l.Algorithm == throttle.AlgorithmLeakyBucket || l.Algorithm == throttle.AlgorithmGCRA {
			bound{rateOf(l), float64(burstOf(l)), 10 * time.Microsecond, spells}.judge(f.t, "promised of "+l.String(), due)
		}
	}
}

// judgeLocal judges what each replica let go by itself: never more than its
// share, whatever the machine did to the way to Redis. Once all knew of each
// other it divides by as many as there are, until Redis has forgotten who is.
func (f *fleet) judgeLocal() {
	f.t.Helper()
	if len(f.processes) > 0 || f.forgot {
		return
	}
	for i := range f.members {
		local := func(d departure) bool { return d.Local && d.Replica == i && d.At > f.known }
		if len(f.plan.Limits) == 1 {
			bound{rate: f.lossRate(), burst: float64(f.lossBurst()), x: f.journal.late(local) + spread}.judge(f.t, "local share of replica "+strconv.Itoa(i), f.journal.instants(local))
		}
	}
}

// A journal is what left, in the order in which it was told.
type journal struct {
	mu   sync.Mutex
	left []departure
}

func (j *journal) note(d departure) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left = append(j.left, d)
}

func (j *journal) all() []departure {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.left)
}

// instants returns when those departed that are asked for, in order.
func (j *journal) instants(of func(departure) bool) []throttle.Instant {
	return j.sorted(of, func(d departure) throttle.Instant { return d.At })
}

// dues returns when their permits were due.
func (j *journal) dues(of func(departure) bool) []throttle.Instant {
	return j.sorted(of, func(d departure) throttle.Instant { return d.Due })
}

func (j *journal) sorted(of func(departure) bool, by func(departure) throttle.Instant) []throttle.Instant {
	var all []throttle.Instant
	for _, d := range j.all() {
		if of(d) {
			all = append(all, by(d))
		}
	}
	slices.Sort(all)
	return all
}

func everybody(departure) bool { return true }

// count returns how many departed in a window.
func (j *journal) count(from, to throttle.Instant) int { return count(j.instants(everybody), from, to) }

// late returns how late after the instant of their permits those departed that
// are asked for, at most.
func (j *journal) late(of func(departure) bool) time.Duration {
	var most time.Duration
	for _, d := range j.all() {
		if of(d) {
			most = max(most, d.At.Sub(d.Due))
		}
	}
	return most
}

// stray counts what departed under the policy for a loss where none was made:
// the machine stood still for as long as a store may take to answer.
func (j *journal) stray(spells []spell) int {
	n := 0
	for _, d := range j.all() {
		if d.Local && !d.foreseen(spells) {
			n++
		}
	}
	return n
}

// foreseen reports whether the replica was cut off when it departed.
func (d departure) foreseen(spells []spell) bool {
	return slices.ContainsFunc(spells, func(s spell) bool { return s.from <= d.At && d.At <= s.to && d.Replica < s.below })
}
