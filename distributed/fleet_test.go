package distributed_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// patience bounds steps of a fleet that take a moment on an idle machine.
const patience = 15 * time.Second

// A plan says how a fleet is made. If Redis is a single server, each replica connects through a
// proxy of its own.
type plan struct {
	config
	server    *redistest.Server // nil: one is started, unless Redis.Addrs is set
	members   int               // replicas in this process
	processes int               // and in processes of their own
	prepare   func(r *replica)  // called before members start; nil: no preparation
}

// A fleet is replicas that share limits, and a journal of their departures.
type fleet struct {
	t      *testing.T
	plan   plan
	seed   uint64
	random *rand.Rand
	server *redistest.Server // nil if Redis is not a single server
	links  []*redistest.Proxy

	members   []*replica
	processes []*process
	journal   journal
	known     throttle.Instant // when the replicas learned of each other
	forgot    bool             // Redis lost its state
	stopped   bool
	void      uint64 // permits not taken in time
	unknown   uint64 // permits of calls without an answer
}

// The defaults of a plan. At this rate the tolerance adds two permits, and the burst is well above
// them.
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
	if c.Limits == nil && c.Callers == 0 && c.Arrivals == 0 && f.prefetches() {
		c.prefetch(p.members + p.processes)
	}
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

// prefetches reports whether replicas prefetch by default: as the environment says, and in long
// runs the seed.
func (f *fleet) prefetches() bool {
	on, err := strconv.ParseBool(os.Getenv("WEIR_PREFETCH"))
	return on || err != nil && long && f.seed%2 == 1
}

// prefetch configures prefetching for a number of replicas. Three quarters of the rate arrive as
// single calls, or now and then a fourth of the burst at once.
func (c *config) prefetch(replicas int) {
	const rate, burst = 3 * rate, 5 * burst
	c.Limits = []throttle.Limit{throttle.TokenBucket(rate, time.Second, burst)}
	c.Callers, c.Arrivals, c.Flood, c.Prefetch = -1, 0.6*rate/float64(max(replicas, 3)), burst/4, prefetchAhead
}

// seeded returns the seed of the test, from the environment or random, and logs how to repeat it.
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

// way returns the config of one more replica, with its own proxy if Redis is a single server.
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

// states returns the states of all replicas.
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

// patiently returns a config whose store calls may take as long as on a busy machine, so that no
// loss is detected without a fault.
func patiently(limits ...throttle.Limit) config {
	return config{Limits: limits, Deadline: patience, MaxDeadline: patience}
}

func now() throttle.Instant { return throttle.InstantOf(time.Now()) }

// pass sleeps for d, or longer in long runs.
func (f *fleet) pass(d time.Duration) {
	if long {
		d *= 3
	}
	time.Sleep(d)
}

// long says whether tests run for longer.
var long = os.Getenv("WEIR_LONG") != ""

// await polls a condition every few milliseconds, and returns how long it took to hold. A starved
// machine has taken longer than patience.
func await(t *testing.T, what string, come func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !come() {
		if took := time.Since(began); took > 4*patience {
			t.Fatalf("waited %v for %s", took, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

// steady returns when all replicas share the limits and know of each other.
func (f *fleet) steady() {
	f.t.Helper()
	n := f.replicas()
	defer f.describe()
	await(f.t, "the replicas to know each other", func() bool {
		return !slices.ContainsFunc(f.states(), func(s throttle.StoreState) bool { return s.Lost || s.Replicas < n })
	})
	f.known = now()
}

// back returns when no replica has lost its store and the fleet departs at a tenth of its rate or
// more: a machine that stops voids permits.
func (f *fleet) back() throttle.Instant {
	f.t.Helper()
	const lately = 200 * time.Millisecond
	defer f.describe()
	took := await(f.t, "the fleet to be back", func() bool {
		at := now()
		recent := f.journal.count(at.Add(-lately), at)
		return float64(recent) >= rateOf(f.plan.Limits[0])*lately.Seconds()/10 &&
			!slices.ContainsFunc(f.states(), func(s throttle.StoreState) bool { return s.Lost })
	})
	f.t.Logf("back after %v", took.Round(time.Millisecond))
	return now()
}

// describe logs the replicas' states if the test has failed.
func (f *fleet) describe() {
	f.t.Helper()
	if f.t.Failed() {
		for i, s := range f.states() {
			f.t.Logf("replica %d: %+v", i, s)
		}
	}
}

// stop ends the fleet. It fails the test if a caller does not return, or returned too long after
// its deadline.
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
		if over := time.Duration(r.overdue.Load()); over > patience { // a starved machine takes eight seconds
			f.t.Errorf("replica %d: a caller returned %v after its deadline", i, over)
		}
	}
	for _, p := range f.processes {
		p.Leave()
	}
}
