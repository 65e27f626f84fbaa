package distributed_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A config says what a replica does. A process receives it as JSON.
type config struct {
	Redis     place
	Namespace string
	Lane      string
	Limits    []throttle.Limit

	Callers  int           // each calls again as soon as it has departed
	Arrivals float64       // calls per second, at random instants
	Flood    int           // calls at once in one of a hundred arrivals; zero: one
	Patience time.Duration // deadline of each call; zero: 5 s
	Seed     uint64        // of the instants of arrival
	Together int           // replicas in the process; zero: 1

	OnLoss      distributed.Loss
	Share       float64
	Replicas    int
	Deadline    time.Duration
	MaxDeadline time.Duration
	Prefetch    time.Duration
	Skewed      bool // the clock of Redis can be stepped
}

// A place says how to reach Redis.
type place struct {
	Addrs    []string
	Master   string // its name if Addrs are sentinels
	Cluster  bool
	User     string
	Password string
	PoolSize int
}

func (p place) client() redis.UniversalClient {
	switch {
	case p.Cluster:
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: p.Addrs, Username: p.User, Password: p.Password})
	case p.Master != "":
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: p.Master, SentinelAddrs: p.Addrs})
	default:
		return redis.NewClient(&redis.Options{Addr: p.Addrs[0], Username: p.User, Password: p.Password, PoolSize: p.PoolSize})
	}
}

// A departure is what the vendor would have seen, at the instant of the last check of the permits.
type departure struct {
	Replica int              `json:"r"`
	At      throttle.Instant `json:"at"`
	Charged throttle.Instant `json:"charged"`         // instant of its permits by the replica's clock
	Due     throttle.Instant `json:"due"`             // and by the clock of Redis, which is this machine's
	Local   bool             `json:"local,omitempty"` // granted here, under the policy for a loss
	Waited  time.Duration    `json:"waited"`
}

// late is how long after the instant of its permits it departed, by the replica's clock.
func (d departure) late() time.Duration { return d.At.Sub(d.Charged) }

// behind is how much later than Redis the replica dates permits: it dates a reply by the time of
// reading.
func (d departure) behind() time.Duration { return d.Charged.Sub(d.Due) }

// A replica is a store, a queue and its callers.
type replica struct {
	config
	index   int
	given   redis.UniversalClient
	store   *distributed.Store
	limiter throttle.Limiter
	queue   *shaping.Queue
	depart  func(departure)

	skew    atomic.Int64 // of the clock of Redis, in microseconds
	cancel  context.CancelFunc
	calling sync.WaitGroup
	overdue atomic.Int64 // longest time from a deadline to its caller's return

	mu       sync.Mutex
	refusals map[string]int // by text
	refused  error          // the last
}

// open makes a replica over a client, which it closes in the end. It reports each departure to
// depart, from any goroutine.
func open(c config, index int, given redis.UniversalClient, depart func(departure)) *replica {
	r := &replica{config: c, index: index, given: given, depart: depart, refusals: make(map[string]int)}
	if r.Patience == 0 {
		r.Patience = 5 * time.Second
	}
	r.store = distributed.New(given, c.Namespace)
	r.store.OnLoss, r.store.Share, r.store.Replicas = c.OnLoss, c.Share, c.Replicas
	r.store.Deadline, r.store.MaxDeadline, r.store.Prefetch = c.Deadline, c.MaxDeadline, c.Prefetch
	r.store.Logger = slog.New(slog.DiscardHandler)
	return r
}

// step sets the clock of Redis off by to microseconds.
func (r *replica) step(to string) {
	skew, err := strconv.ParseInt(to, 10, 64)
	if err != nil {
		panic(err)
	}
	r.skew.Store(skew)
}

// start starts the callers.
func (r *replica) start() error {
	var err error
	if r.limiter, err = r.store.Limiter(r.Lane, r.Limits...); err != nil {
		return err
	}
	if r.Skewed {
		distributed.Skew(r.store, &r.skew)
	}
	r.queue = shaping.NewQueue(r.limiter)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	for range r.Callers {
		r.calling.Go(func() { r.loop(ctx) })
	}
	if r.Arrivals > 0 {
		r.calling.Go(func() { r.arrive(ctx) })
	}
	return nil
}

// loop calls again and again.
func (r *replica) loop(ctx context.Context) {
	for ctx.Err() == nil {
		if !r.call(ctx) {
			rest(ctx, 5*time.Millisecond) // a refusal returns at once
		}
	}
}

// arrive calls at the instants of a Poisson process.
func (r *replica) arrive(ctx context.Context) {
	random := rand.New(rand.NewPCG(r.Seed, uint64(r.index)))
	next := time.Now()
	for ctx.Err() == nil {
		next = next.Add(time.Duration(random.ExpFloat64() / r.Arrivals * float64(time.Second)))
		rest(ctx, time.Until(next))
		n := 1
		if r.Flood > 0 && random.IntN(100) == 0 {
			n = r.Flood
		}
		for range n {
			r.calling.Go(func() { r.call(ctx) })
		}
	}
}

func rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// call waits for one turn, and reports whether it departed.
func (r *replica) call(ctx context.Context) bool {
	waiting, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	turn := shaping.Turn{N: 1}
	began := time.Now()
	err := r.queue.WaitTurn(waiting, &turn)
	waited := time.Since(began)
	for over := int64(waited - r.Patience); ; {
		most := r.overdue.Load()
		if over <= most || r.overdue.CompareAndSwap(most, over) {
			break
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			r.refuse(err)
		}
		return false
	}
	granted := turn.Departure().Grant
	local, due := granted.Ref.Instant == 0, granted.At
	if !local {
		due = script.InstantOf(granted.Ref.Instant)
	}
	due = due.Add(-time.Duration(r.skew.Load()) * time.Microsecond)
	r.depart(departure{Replica: r.index, At: turn.Departed(), Charged: granted.At, Due: due, Local: local, Waited: waited})
	return true
}

func (r *replica) refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals[err.Error()]++
	r.refused = err
}

// state returns the state of the replica's store.
func (r *replica) state() throttle.StoreState {
	return *r.limiter.State(r.queue.Now()).Store
}

// halt stops the callers and returns when they have ended.
func (r *replica) halt() {
	if r.cancel != nil {
		r.cancel()
	}
	r.calling.Wait()
}

// close shuts the replica down as a process does in an orderly exit.
func (r *replica) close() {
	r.halt()
	_ = r.store.Close()
	_ = r.given.Close()
}
