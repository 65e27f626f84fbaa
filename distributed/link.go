package distributed

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// A link is a store's connection to Redis, from its first limiter to its last.
type link struct {
	store  *Store
	client redis.UniversalClient
	own    bool     // the client is the store's, which closes it
	node   *breaker // of the one node; nil: of a Cluster, in which each lane has its own

	subscription sync.Once
	stop         context.CancelFunc
	stopped      context.Context
	hearing      sync.WaitGroup

	down   atomic.Bool  // the last call failed
	warned atomic.Bool  // the operator was told of it
	logged atomic.Int64 // when that was, in nanoseconds since the epoch

	overdue atomic.Int64 // when the operator was told of void permits, likewise
}

func newLink(s *Store) *link {
	k := &link{store: s}
	k.client, k.own = ownClient(s.given, &s.set)
	k.stopped, k.stop = context.WithCancel(context.Background())
	if _, cluster := k.client.(*redis.ClusterClient); !cluster {
		k.node = newBreaker(&s.set)
	}
	if !k.own {
		s.logger().Warn("weir: the Redis client is of a kind whose options cannot be read: it is used as it is, and may try again what the store must not", "namespace", s.namespace)
	}
	if addr := plainAddress(s.given); addr != "" {
		s.logger().Warn("weir: shared limits travel without TLS beyond private networks", "address", addr)
	}
	return k
}

func (k *link) close() {
	k.stop()
	k.hearing.Wait()
	if k.own {
		_ = k.client.Close() // its connections are gone either way
	}
}

// run runs the script once.
func (k *link) run(ctx context.Context, keys []string, args []any) (any, error) {
	v, err := script.EvalSha(ctx, k.client, keys, args...).Result()
	if redis.HasErrorPrefix(plain(err), "NOSCRIPT") {
		v, err = script.Eval(ctx, k.client, keys, args...).Result()
	}
	if err = plain(err); err == nil {
		return v, nil
	}
	if c, ok := k.client.(*redis.ClusterClient); ok && k.own {
		c.ReloadState(ctx) // in the background: another node may be the master by now
	}
	if ctx.Err() != nil {
		return nil, context.DeadlineExceeded // whatever the socket says of it
	}
	return nil, err
}

// ended notes how a call ended, and tells the operator when that changes.
func (k *link) ended(cause string) {
	lost := cause != ""
	if k.down.Load() == lost || !k.down.CompareAndSwap(!lost, lost) {
		return
	}
	log := k.store.logger().With("namespace", k.store.namespace)
	if now := time.Now().UnixNano(); lost && now-k.logged.Load() > int64(time.Second) { // it may come and go
		k.logged.Store(now)
		k.warned.Store(true)
		log.LogAttrs(context.Background(), slog.LevelWarn, "weir: shared limits lost: Redis does not answer",
			slog.String("cause", cause), slog.String("policy", k.store.set.onLoss.String()))
	}
	if !lost && k.warned.Swap(false) {
		log.Info("weir: shared limits are back")
	}
}

// A breaker stops calls to a node that does not answer.
type breaker struct {
	two   *gobreaker.TwoStepCircuitBreaker[struct{}]
	until atomic.Int64 // when it lets one through again, in nanoseconds since the epoch
}

// errStalled ends a call whose deadline fired late because this process stood still.
// It says nothing about the node.
var errStalled = errors.New("this process stood still")

func newBreaker(set *settings) *breaker {
	b := new(breaker)
	b.two = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     set.breakFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= set.breakAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, errStalled) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.until.Store(time.Now().Add(set.breakFor).UnixNano())
			}
		},
	})
	return b
}

// allow returns a function that must be told how the call ended; or, if no call may
// go through, nil and how long to wait before asking again.
func (b *breaker) allow() (done func(error), wait time.Duration) {
	done, err := b.two.Allow()
	if err == nil {
		return done, 0
	}
	const probing = 50 * time.Millisecond // another call finds out
	return nil, max(time.Until(time.Unix(0, b.until.Load())), probing)
}
