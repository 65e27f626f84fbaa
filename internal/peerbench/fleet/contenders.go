package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/peerbench"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A quota is shared by replicas.
type quota struct {
	Name  string // its name in Redis
	Rate  int    // per second
	Burst int
}

func (q quota) limits() []throttle.Limit {
	return []throttle.Limit{throttle.TokenBucket(q.Rate, time.Second, q.Burst)}
}

// A wait returns once a permit is granted.
type wait func(context.Context) error

// closers are closed in order.
type closers []io.Closer

func (all closers) Close() error {
	for _, c := range all {
		c.Close()
	}
	return nil
}

// A contender is one replica's way to keep to a quota. Close leaves Redis in order.
type contender struct {
	io.Closer
	transport http.RoundTripper // nil if only waits are measured
	wait      wait              // nil if calls are measured
	lost      func() int        // store calls without an answer, if the contender reports them
}

func untold() int { return 0 }

// newStore returns a Weir store that logs nothing: its losses are counted.
func newStore(rdb *redis.Client, q quota) *distributed.Store {
	store := distributed.New(rdb, q.Name)
	store.Logger = slog.New(slog.DiscardHandler)
	return store
}

// sending returns a contender that sends, set up as its documentation says. x/time/rate shares
// nothing, so each replica has its part of the limit. Each attempt of the peers, not only each
// call, waits for its limiter.
func sending(t *task, base http.RoundTripper) (*contender, error) {
	q := t.Quota
	rdb := connect(t.Redis)
	switch t.Who {
	case xtime:
		limiter := rate.NewLimiter(rate.Limit(q.Rate)/rate.Limit(t.Replicas), max(1, q.Burst/t.Replicas))
		transport := peerbench.Retryable(&peerbench.Limited{Limiter: limiter, Base: base})
		return &contender{Closer: rdb, transport: transport, lost: untold}, nil
	case redisRate, pipelined, increx:
		poll, err := polling(t.Who, rdb, q)
		if err != nil {
			return nil, err
		}
		transport := peerbench.Retryable(&limited{poll, base})
		return &contender{Closer: rdb, transport: transport, lost: untold}, nil
	case alone:
		transport := &weir.Transport{Base: base, Logger: slog.New(slog.DiscardHandler)}
		return &contender{Closer: closers{transport, rdb}, transport: transport, lost: untold}, nil
	case weirs, learning:
		store := newStore(rdb, q)
		transport := &weir.Transport{Base: base, Store: store, Logger: slog.New(slog.DiscardHandler)}
		if t.Who == weirs {
			transport.Limits = q.limits()
		}
		return &contender{Closer: closers{transport, store, rdb}, transport: transport, lost: lostBy(transport)}, nil
	}
	return nil, fmt.Errorf("fleet: %q sends nothing", t.Who)
}

func lostBy(t *weir.Transport) func() int {
	return func() int {
		n := 0
		for _, lane := range t.Snapshot() {
			if lane.Store != nil {
				n += int(lane.Store.Failures)
			}
		}
		return n
	}
}

// limited waits before each round trip.
type limited struct {
	wait wait
	base http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (l *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := l.wait(req.Context()); err != nil {
		return nil, err
	}
	return l.base.RoundTrip(req)
}

// polling waits with redis_rate, which answers whether a permit is granted, and if not when to ask
// again. Pipelined, the calls of all goroutines share batches.
func polling(who string, rdb *redis.Client, q quota) (wait, error) {
	if who == increx {
		return counting(rdb, q), nil
	}
	limiter := redis_rate.NewLimiter(rdb)
	if who == pipelined {
		pipeline, err := rdb.AutoPipeline() // it ends with the client
		if err != nil {
			return nil, err
		}
		limiter = redis_rate.NewLimiter(pipeline)
	}
	limit := redis_rate.Limit{Rate: q.Rate, Burst: q.Burst, Period: time.Second}
	return func(ctx context.Context) error {
		for {
			res, err := limiter.Allow(ctx, q.Name, limit)
			if err != nil || res.Allowed > 0 {
				return err
			}
			select {
			case <-time.After(res.RetryAfter):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}, nil
}

// counting waits with INCREX: a window counts its permits, and a caller that finds it full sleeps
// until its end. Two windows together have the burst: for 200/s burst 20, 10 in each 50 ms.
func counting(rdb *redis.Client, q quota) wait {
	permits := max(1, q.Burst/2)
	window := time.Second * time.Duration(permits) / time.Duration(q.Rate)
	once := redis.IncrEXIntArgs{
		UBound: int64(permits), HasUBound: true,
		Expiration: &redis.ExpirationOption{Mode: redis.PX, Value: max(1, window.Milliseconds())}, ENX: true,
	}
	return func(ctx context.Context) error {
		for {
			res, err := rdb.IncrEXInt(ctx, q.Name, once).Result()
			if err != nil || res.AppliedIncrement > 0 {
				return err
			}
			left, err := rdb.PTTL(ctx, q.Name).Result()
			if err != nil {
				return err
			}
			select {
			case <-time.After(max(left, time.Millisecond)):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// waiting returns a contender that waits. It leaves the client open.
func waiting(who string, rdb *redis.Client, q quota) (*contender, error) {
	switch who {
	case redisRate, pipelined, increx:
		poll, err := polling(who, rdb, q)
		return &contender{Closer: closers{}, wait: poll, lost: untold}, err
	case ping:
		wait := func(ctx context.Context) error { return rdb.Ping(ctx).Err() }
		return &contender{Closer: closers{}, wait: wait, lost: untold}, nil
	case weirs:
		store := newStore(rdb, q)
		limiter, err := store.Limiter("line", q.limits()...)
		if err != nil {
			return nil, err
		}
		queue := shaping.NewQueue(limiter)
		lost := func() int { return int(queue.State().Store.Failures) }
		return &contender{Closer: closers{queue, store}, wait: queue.Wait, lost: lost}, nil
	}
	return nil, fmt.Errorf("fleet: %q does not wait", who)
}
