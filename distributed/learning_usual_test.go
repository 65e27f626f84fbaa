package distributed

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

// Who learns calls in few words, whether there is something to tell or not: with a learned
// pace, with a configured limit, and with both. What another tells is heard all the same.
func TestWhoLearnsCallsInFewWords(t *testing.T) {
	paced := store.Pacing{Counted: true, Interval: time.Microsecond}
	bucket := []throttle.Limit{throttle.TokenBucket(1_000_000, time.Second, 1)}
	for name, c := range map[string]struct {
		pace   store.Pacing
		limits []throttle.Limit
		tells  bool
	}{
		"a bucket, nothing learned": {store.Pacing{}, bucket, false},
		"a pace":                    {paced, nil, false},
		"a bucket and a pace":       {paced, bucket, false},
		"a pace, and much to tell":  {paced, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := newClass(t)
			other, s := all.seat(c.pace, c.limits...), all.seat(c.pace, c.limits...)
			var words wordCount
			s.limiter.Link.Client.Redis.AddHook(&words)
			const calls, told = 200, 5
			for i := range calls {
				if i%(calls/told) == 0 {
					other.tell("word")
					eventually(t, "it is told", func() bool { return strings.Count(strings.Join(other.knows(), " "), "word") > i/(calls/told) })
				}
				if c.tells {
					s.say(store.Entry{Data: []byte("spoke")})
				}
				s.call(t)
			}
			few, many := words.few.Load(), words.many.Load()
			if t.Logf("%d calls in few words, %d in many", few, many); few < calls*3/4 || strings.Count(strings.Join(s.knows(), " "), "word") != told {
				t.Errorf("%d calls in few words heard %d words, want %d and %d", few, len(s.knows()), calls*3/4, told)
			}
		})
	}
}

// A wordCount counts calls of the script by what decided them.
type wordCount struct {
	passing
	few, many atomic.Int64
}

func (w *wordCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
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
