package distributed

import (
	"context"
	"encoding/binary"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed/internal/reserve"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// Reports returns how many reports wait to be sent.
func Reports(of throttle.Limiter) int {
	_, _, n := of.(*reserve.Limiter).Inspect()
	return n
}

// Cut makes every call of the store to Redis fail, as over a lost connection.
func Cut(s *Store) {
	s.hub.Mu.Lock()
	defer s.hub.Mu.Unlock()
	s.hub.Link.Client.Redis.AddHook(lost{})
}

type lost struct{ passing }

func (lost) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		cmd.SetErr(io.EOF)
		return io.EOF
	}
}

// Dawdle delays each failing script call of the store, as in a process that runs late.
func Dawdle(s *Store, by time.Duration) {
	s.hub.Mu.Lock()
	defer s.hub.Mu.Unlock()
	s.hub.Link.Client.Redis.AddHook(dawdling{by: by})
}

type dawdling struct {
	passing
	by time.Duration
}

func (d dawdling) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil && cmd.Name() == "evalsha" {
			time.Sleep(d.by) // late, in bubbles too
		}
		return err
	}
}

// A passing hook changes nothing. Hooks that change commands embed it.
type passing struct{}

func (passing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (passing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Skew shifts the clock of Redis for all calls of the store: tests may pass the script an instant.
func Skew(s *Store, by *atomic.Int64) {
	s.hub.Mu.Lock()
	defer s.hub.Mu.Unlock()
	s.hub.Link.Client.Redis.AddHook(skewed{by: by})
}

// A skewed hook fills in the instant. It is the script's first argument, or the first of the packed
// numbers of a usual call.
type skewed struct {
	passing
	by *atomic.Int64
}

func (h skewed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args, by := cmd.Args(), h.by.Load()
		if by != 0 && len(args) > 3 && strings.HasPrefix(cmd.Name(), "eval") {
			first, now := 3+args[2].(int), time.Now().UnixMicro()+by
			if packed, ok := args[first].([]byte); ok {
				binary.LittleEndian.PutUint64(packed, uint64(now))
			} else {
				args[first] = now
			}
		}
		return next(ctx, cmd)
	}
}

// InHand returns how many permits are in hand.
func InHand(of throttle.Limiter) int {
	n, _, _ := of.(*reserve.Limiter).Inspect()
	return n
}

// Alone reports whether the store has failed to answer and no permit in hand is still valid.
func Alone(of throttle.Limiter) bool {
	l := of.(*reserve.Limiter)
	_, usable, _ := l.Inspect()
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Lost && l.Cause != "slow" && usable == 0
}

// SetPrefetch sets Store.Prefetch of a store that already has limiters.
func SetPrefetch(s *Store, d time.Duration) { s.hub.Set.Prefetch = d }

// SetLayout makes a store write another layout, as another version may.
func SetLayout(s *Store, layout string) {
	s.hub.Layout, s.hub.Channel = layout, "weir:"+layout+":messages:"+script.Escape(s.hub.Namespace)
}
