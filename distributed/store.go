package distributed

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed/internal/script"
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
	// round trips, but no less than Deadline. Zero means DefaultDeadline.
	Deadline time.Duration

	// MaxDeadline is the longest deadline of a call on a connection in use. Zero
	// means DefaultMaxDeadline.
	MaxDeadline time.Duration

	// FirstDeadline is the deadline of a first call, and of a probe after a loss:
	// they dial. Callers wait no longer for them than for any call, and then go by
	// OnLoss. Zero means DefaultFirstDeadline.
	FirstDeadline time.Duration

	// BreakAfter is how many calls in a row must fail for the store to be
	// asked no more for BreakFor. Zero means DefaultBreakAfter.
	BreakAfter int

	// BreakFor is how long the store is asked no more then. Zero means
	// DefaultBreakFor.
	BreakFor time.Duration

	// Lease is for how long a process has the slots of calls in flight that Redis
	// gave it: see [Store.Flights]. It renews them at a third of that. Zero means
	// DefaultLease.
	Lease time.Duration

	// Logger receives a line when Redis is lost, with what is wrong, the address and
	// the text of the error, and when it is back; once, the rate of a lane for which
	// Redis never answered, if Replicas is zero; when limits differ between replicas;
	// when state was lost; when the grant for the channel is missing; and, once a
	// minute at most, when most permits come too late to be used. No line has the name or the
	// password of a user. If nil, slog.Default().
	Logger *slog.Logger

	given     redis.UniversalClient
	namespace string
	layout    string // of its keys; only tests set another
	channel   string // of the news

	once sync.Once
	set  settings
	err  error // of the settings

	mu      sync.Mutex
	closed  bool
	open    map[string][]*limiter // by the lane's word
	flights map[string][]*slots   // likewise
	link    *link                 // while a limiter or slots are open
	calling sync.WaitGroup
}

var _ throttle.Store = (*Store)(nil)

// New returns a store that shares limits under a namespace, such as the name of
// the vendor's account, through the Redis that rdb is a client of: a single
// node, one found by Sentinel, a Cluster, or a Ring. It panics if rdb is nil.
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
	return &Store{given: rdb, namespace: namespace, layout: script.Layout, channel: script.ChannelName(namespace), open: make(map[string][]*limiter), flights: make(map[string][]*slots)}
}

// ErrClosed is matched by errors of a store that was closed.
var ErrClosed = errors.New("store is closed")

// Limiter implements [throttle.Store]. The error is for settings, or limits,
// that make no sense or that are beyond what the store can count, and matches
// ErrClosed after Close. It does not reach for Redis: that begins with the
// first request.
func (s *Store) Limiter(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	l, err := newLimiter(s, key, limits)
	if err != nil {
		return nil, err
	}
	return l, s.attach(key, func(k *link) {
		l.link, l.node = k, k.node("")
		s.open[l.lane] = append(s.open[l.lane], l)
	})
}

// ready reads the settings, once.
func (s *Store) ready() error {
	s.once.Do(func() { s.set, s.err = s.settings() })
	return s.err
}

// attach has a part of a lane opened, under the lock, with the link.
func (s *Store) attach(key string, open func(*link)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("distributed: limiter of %q: %w", key, ErrClosed)
	}
	if s.link == nil {
		s.link = newLink(s)
	}
	open(s.link)
	return nil
}

// Close closes every limiter of the store, ends its calls and closes its
// connections, not those of the client it was made with. Limiters then refuse
// with ErrClosed. Calling it again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	open := slices.Concat(slices.Collect(maps.Values(s.open))...)
	flights := slices.Concat(slices.Collect(maps.Values(s.flights))...)
	s.mu.Unlock()
	for _, f := range flights {
		_ = f.Close() // it says nothing else
	}
	for _, l := range open {
		_ = l.Close() // likewise
	}
	s.calling.Wait()
	return nil
}

// detach is told by a limiter that it is closed and has no call in progress. The last
// one closes the link.
func (s *Store) detach(l *limiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	without(s.open, l.lane, l)
	s.unlink()
}

// leave is detach for slots.
func (s *Store) leave(f *slots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	without(s.flights, f.lane, f)
	s.unlink()
}

// without takes out one of those that are open under a lane's word.
func without[T comparable](open map[string][]T, lane string, gone T) {
	if rest := slices.DeleteFunc(open[lane], func(other T) bool { return other == gone }); len(rest) > 0 {
		open[lane] = rest
	} else {
		delete(open, lane)
	}
}

// unlink closes the link if nothing is open any more.
func (s *Store) unlink() {
	if len(s.open) == 0 && len(s.flights) == 0 && s.link != nil {
		link := s.link
		s.link = nil
		s.calling.Go(link.close)
	}
}

// limiters returns those that are open under a lane's word.
func (s *Store) limiters(lane string) []*limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.open[lane])
}

// watched returns any lane that is watched, for events of the store itself; nil if no
// lane is watched.
func (s *Store) watched() *watched {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, lane := range s.open {
		for _, l := range lane {
			if l.by.Load() != nil {
				return &l.watched
			}
		}
	}
	return nil
}

func (s *Store) logger() *slog.Logger {
	if s.Logger != nil {
		return s.Logger
	}
	return slog.Default()
}
