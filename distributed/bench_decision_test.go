package distributed

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// BenchmarkSharedDecision measures this process's part of a shared decision for a caller that waits
// alone. It leaves out go-redis and Redis: calls are answered at once.
func BenchmarkSharedDecision(b *testing.B) {
	server := redistest.Start(b)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	b.Cleanup(func() { client.Close() })
	store := New(client, "bench")
	store.Logger = slog.New(slog.DiscardHandler)
	b.Cleanup(func() { _ = store.Close() })
	limiter, err := store.Limiter("line", throttle.TokenBucket(1_000_000, time.Second, 100_000))
	if err != nil {
		b.Fatal(err)
	}
	queue, ctx := shaping.NewQueue(limiter), b.Context()
	for range 100 {
		if err := queue.Wait(ctx); err != nil {
			b.Fatal(err)
		}
	}
	store.hub.Link.Client.Redis.AddHook(&answering{})
	b.ReportAllocs()
	for b.Loop() {
		if err := queue.Wait(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// answering answers each usual call with a permit for now, as the script would.
type answering struct{ furthest int64 }

func (*answering) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*answering) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *answering) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		run, ok := cmd.(*redis.Cmd)
		if !ok || cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		if _, usual := cmd.Args()[4].([]byte); !usual {
			return next(ctx, cmd)
		}
		now := time.Now().UnixMicro()
		a.furthest = max(a.furthest+1, now)
		run.SetVal([]any{"", now, a.furthest, int64(0), int64(0), now, int64(1)})
		return nil
	}
}
