package distributed

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A day's limit put before a second's is a new limit. Replicas without it continue, and the counts
// of one are not applied to the other.
func TestAPrependedLimitIsAnother(t *testing.T) {
	second, day := throttle.TokenBucket(100, time.Second, 10), throttle.FixedWindow(5000, 24*time.Hour)
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, time.Millisecond)
		open := func(limits ...throttle.Limit) (*Store, *shaping.Queue) {
			s := New(server.Client(t), "fleet")
			s.Logger = slog.New(slog.DiscardHandler)
			t.Cleanup(func() { s.Close() })
			l, err := s.Limiter("vendor", limits...)
			if err != nil {
				t.Fatal(err)
			}
			return s, shaping.NewQueue(l)
		}
		count := func(q *shaping.Queue) (n int) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			for q.Wait(ctx) == nil && n < 3000 {
				n++
			}
			return n
		}
		old, a := open(second)
		_, b := open(day, second)
		t.Log("the old one alone:", count(a))
		t.Log("the new one beside it:", count(b))
		t.Log("the old one beside it:", count(a))
		old.Close()
		for again := range 3 {
			if again > 0 && testing.Short() {
				break
			}
			time.Sleep(20 * time.Second)
			t.Log("the new one alone:", count(b))
		}
		time.Sleep(time.Hour)
		if n := count(b); n < 90 {
			t.Errorf("an hour after the old one is gone %d departures in a second, want 100", n)
		}
	})
}
