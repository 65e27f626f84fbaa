package reserve

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/throttle"
)

// A replica that learns makes usual calls, whether it has messages to send or not: with a
// learned pace, with a configured limit, and with both. It applies those of others all the same.
func TestAReplicaThatLearnsMakesUsualCalls(t *testing.T) {
	paced := store.Pacing{Counted: true, Interval: time.Microsecond}
	bucket := []throttle.Limit{throttle.TokenBucket(1_000_000, time.Second, 1)}
	for name, c := range map[string]struct {
		pace   store.Pacing
		limits []throttle.Limit
		sends  bool
	}{
		"a bucket, nothing learned": {store.Pacing{}, bucket, false},
		"a pace":                    {paced, nil, false},
		"a bucket and a pace":       {paced, bucket, false},
		"a pace, and many messages": {paced, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := newTeam(t)
			other, s := all.join(c.pace, c.limits...), all.join(c.pace, c.limits...)
			var count callCount
			s.limiter.Link.Client.Redis.AddHook(&count)
			const calls, messages = 200, 5
			for i := range calls {
				if i%(calls/messages) == 0 {
					other.send("word")
					eventually(t, "it is applied", func() bool { return strings.Count(strings.Join(other.applied(), " "), "word") > i/(calls/messages) })
				}
				if c.sends {
					s.add(store.Entry{Data: []byte("spoke")})
				}
				s.call(t)
			}
			few, many := count.few.Load(), count.many.Load()
			if t.Logf("%d usual calls, %d others", few, many); few < calls*3/4 || strings.Count(strings.Join(s.applied(), " "), "word") != messages {
				t.Errorf("%d usual calls applied %d messages, want %d and %d", few, len(s.applied()), calls*3/4, messages)
			}
		})
	}
}

// A callCount counts calls of the script by what decided them.
type callCount struct{ few, many atomic.Int64 }

func (*callCount) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*callCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *callCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if c, ok := cmd.(*redis.Cmd); ok && strings.HasPrefix(cmd.Name(), "eval") && err == nil {
			if _, few := c.Val().([]any)[0].(string); few {
				w.few.Add(1)
			} else {
				w.many.Add(1)
			}
		}
		return err
	}
}
