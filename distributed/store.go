package distributed

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/reserve"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/distributed/internal/slots"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A Store enforces limits through Redis, together with every other Store of the
// same namespace on the same Redis, in whatever process. Make it with [New] and
// set its fields before first use. It is a [throttle.Store], and safe for
// concurrent use.
//
// While no limiter is open it holds no goroutine and no connection.
type Store struct {
	// OnLoss says what holds while Redis does not answer. Zero means FailLocal.
	OnLoss Loss

	// Share is the part of the limits that FailLocal spends, divided by the
	// replicas: above 0 and at most 1. Zero means DefaultShare.
	Share float64

	// Replicas is the least that FailLocal divides by: it divides by the largest count that
	// Redis returned in the last minute if that is larger. Replicas that use a lane one
	// after another do not count each other, so set it to the most that you run. Zero means
	// that count, and DefaultReplicas, 100, in a lane for which Redis never answered.
	Replicas int

	// Horizon is how long a run may be, from its first permit to its last, in
	// time of the rate shared by the replicas alive. Zero means DefaultHorizon.
	Horizon time.Duration

	// Prefetch is how long ahead a replica has permits for callers who come steadily, each
	// for the instant at which one is expected: see the documentation of the package. It is
	// never longer than Horizon, or than a quarter of the time in which a bucket earns its
	// burst. Zero means that permits are asked for only for callers in line. 50 ms suits
	// hundreds of calls a second.
	Prefetch time.Duration

	// Deadline is the shortest deadline of a call. A call is given four usual
	// round trips, but no less than Deadline, which is at most an hour. Zero means
	// DefaultDeadline.
	Deadline time.Duration

	// MaxDeadline is the longest deadline of a call on a connection in use. Zero
	// means DefaultMaxDeadline.
	MaxDeadline time.Duration

	// FirstDeadline is the deadline of a first call, and of a probe after a loss:
	// they dial. Callers wait no longer for them than for any call, and then go by
	// OnLoss. Zero means DefaultFirstDeadline.
	FirstDeadline time.Duration

	// BreakAfter is how many calls in a row must fail for the breaker to open. Zero means
	// DefaultBreakAfter.
	BreakAfter int

	// BreakFor is how long the breaker stays open. Zero means DefaultBreakFor.
	BreakFor time.Duration

	// Lease is for how long a process has the slots of calls in flight that Redis
	// gave it: see [Store.Flights]. It renews them at a third of that. It is 50 ms at least, so that
	// a call can renew it, and an hour at most. Zero means DefaultLease.
	Lease time.Duration

	// Logger receives a line
	//
	//   - when Redis is lost, with the cause, the address and the text of the error, and when it is
	//     back;
	//   - once, with the rate of a lane for which Redis never answered, if Replicas is zero;
	//   - when limits differ between replicas, when state was lost, and when the grant for the
	//     channel is missing;
	//   - once a minute at most, when most permits arrive too late to be used.
	//
	// No line has the name or the password of a user. If nil, slog.Default().
	Logger *slog.Logger

	hub  *call.Hub
	once sync.Once
	err  error // of the settings
}

var (
	_ throttle.Store    = (*Store)(nil)
	_ store.FlightStore = (*Store)(nil)
)

// ErrClosed is matched by errors of a store that was closed.
var ErrClosed = call.ErrClosed

// ErrUnavailable is matched by the error with which [FailClosed] refuses.
var ErrUnavailable = call.ErrUnavailable

// New returns a store that shares limits under a namespace, such as the name of the vendor's
// account. rdb is a client of its Redis: a single node, one found by Sentinel, a Cluster, or a
// Ring. It panics if rdb is nil.
//
// The store makes a client of its own from the options of a *redis.Client, a
// *redis.ClusterClient or a *redis.Ring: same addresses, credentials and TLS, but no
// hidden retries and tight timeouts. On a Ring a lane stays on its shard, and is lost
// while that is down. Another client is used as it is, with a warning.
// Hooks of rdb are not taken over. A client found by Sentinel must stay open as
// long as the store, which finds the master through it.
func New(rdb redis.UniversalClient, namespace string) *Store {
	if rdb == nil {
		panic("distributed: New with a nil client")
	}
	s := new(Store)
	s.hub = call.NewHub(rdb, namespace, s.logger)
	return s
}

// Limiter implements [throttle.Store]. It returns an error for settings or limits that are invalid
// or too large for the store to count, and one that matches ErrClosed after Close. It connects to
// Redis only with the first request.
func (s *Store) Limiter(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	l, err := reserve.New(s.hub, key, limits)
	if err != nil {
		return nil, err
	}
	return l, s.hub.Attach(l.Lane, l, l.Attached)
}

// Flights implements [store.FlightStore]: this process gets a part of the most calls that all
// processes of the namespace may have in flight under a key. If their settings of the most differ,
// the least is in force. A part is leased for [Store.Lease], and renewed while it is used. If Redis
// is lost, it is used until the lease ends. Then [Store.OnLoss] decides. FailLocal allows
// [Store.Share] of the most, divided by the processes, but one at least. FailOpen allows the most
// for each process. FailClosed allows none, and rejects callers with ErrUnavailable.
//
// The errors are those of [Store.Limiter], and one for a bound that is not positive. It connects to
// Redis only with the first request.
func (s *Store) Flights(key string, most int) (store.Flights, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	f, err := slots.New(s.hub, key, most)
	if err != nil {
		return nil, err
	}
	return f, s.hub.Attach(call.SlotsMessage+f.Lane, f, f.Attached)
}

// ready reads the settings, once.
func (s *Store) ready() error {
	s.once.Do(func() { s.hub.Set, s.err = s.settings() })
	return s.err
}

// Close closes every limiter of the store, ends its calls and closes its
// connections, not those of the client it was made with. Limiters then refuse
// with ErrClosed. Calling it again does nothing.
func (s *Store) Close() error {
	s.hub.Close()
	return nil
}

func (s *Store) logger() *slog.Logger { return cmp.Or(s.Logger, slog.Default()) }

// settings returns an error that names the invalid field.
func (s *Store) settings() (call.Settings, error) {
	set := call.Settings{
		Policy:        s.OnLoss.String(),
		FailOpen:      s.OnLoss == FailOpen,
		FailClosed:    s.OnLoss == FailClosed,
		Share:         cmp.Or(s.Share, DefaultShare),
		Replicas:      s.Replicas,
		Horizon:       cmp.Or(s.Horizon, DefaultHorizon),
		Prefetch:      s.Prefetch,
		Deadline:      cmp.Or(s.Deadline, DefaultDeadline),
		MaxDeadline:   cmp.Or(s.MaxDeadline, DefaultMaxDeadline),
		FirstDeadline: cmp.Or(s.FirstDeadline, DefaultFirstDeadline),
		BreakAfter:    uint32(min(cmp.Or(s.BreakAfter, DefaultBreakAfter), math.MaxInt32)),
		BreakFor:      cmp.Or(s.BreakFor, DefaultBreakFor),
		Lease:         cmp.Or(s.Lease, DefaultLease),
	}
	set.MaxDeadline = max(set.MaxDeadline, set.Deadline)
	set.FirstDeadline = max(set.FirstDeadline, set.Deadline)
	switch {
	case s.OnLoss > FailClosed:
		return set, fmt.Errorf("distributed: unknown OnLoss %v", s.OnLoss)
	case s.Replicas < 0:
		return set, fmt.Errorf("distributed: Replicas %d is negative", s.Replicas)
	case !(set.Share > 0 && set.Share <= 1):
		return set, fmt.Errorf("distributed: Share %v is not above 0 and at most 1", s.Share)
	case s.Lease > script.LongestPause:
		return set, fmt.Errorf("distributed: Lease %v is above %v", s.Lease, script.LongestPause)
	case s.Lease > 0 && s.Lease < DefaultDeadline:
		return set, fmt.Errorf("distributed: Lease %v is below %v", s.Lease, DefaultDeadline)
	case s.Deadline > script.LongestPause:
		return set, fmt.Errorf("distributed: Deadline %v is above %v", s.Deadline, script.LongestPause)
	case s.BreakAfter < 0:
		return set, fmt.Errorf("distributed: BreakAfter %d is negative", s.BreakAfter)
	}
	for name, d := range map[string]time.Duration{
		"Horizon": s.Horizon, "Prefetch": s.Prefetch, "Deadline": s.Deadline, "MaxDeadline": s.MaxDeadline,
		"FirstDeadline": s.FirstDeadline, "BreakFor": s.BreakFor, "Lease": s.Lease,
	} {
		if d < 0 {
			return set, fmt.Errorf("distributed: %s %v is negative", name, d)
		}
	}
	return set, nil
}
