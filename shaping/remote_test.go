package shaping

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

// bringing is a remote limiter that grants as many callers as the test allows.
type bringing struct {
	throttle.Limiter
	permits atomic.Int64
	wake    func()
}

func newBringing() *bringing {
	b := new(bringing)
	b.Limiter = throttle.LimiterFunc(func(now throttle.Instant, _ throttle.Request) (throttle.Instant, error) {
		if b.permits.Add(-1) < 0 {
			b.permits.Add(1)
			return throttle.Never, nil
		}
		return now, nil
	})
	return b
}

func (b *bringing) Notify(wake func()) { b.wake = wake }

func (*bringing) Fetch(throttle.Instant, int, iter.Seq[throttle.Request]) {}

func (*bringing) Close() error { return nil }

// Tolerance is long: a machine at its limit must not make permits void here.
func (*bringing) Tolerance() time.Duration { return time.Hour }

func (b *bringing) bring(permits int) {
	b.permits.Add(int64(permits))
	b.wake()
}

// Crowds that come again and again reuse the memory of those before. Each permit grants one caller,
// and no other is woken, whichever caller gives up before, or in the same moment.
func TestEachPermitLetsOneOfACrowdGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 3 * crowd
		b := newBringing()
		q := NewQueue(b)
		for round := range 100 {
			var departed, gone atomic.Int64
			var all sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			leaves := rand.IntN(callers)
			for i := range callers {
				all.Go(func() {
					ctx := ctx
					if i >= leaves {
						ctx = t.Context()
					}
					switch err := q.Wait(ctx); {
					case err == nil:
						departed.Add(1)
					case errors.Is(err, context.Canceled):
						gone.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			if round%2 == 0 {
				cancel()
				synctest.Wait()
				first := callers - leaves - crowd/2
				b.bring(max(first, 0))
				synctest.Wait()
				if n := departed.Load(); n != int64(max(first, 0)) {
					t.Fatalf("%d departed with %d permits", n, first)
				}
			} else {
				go cancel()
			}
			b.bring(callers)
			all.Wait()
			if departed.Load()+gone.Load() != callers || gone.Load() > int64(leaves) || q.Waiting() != 0 {
				t.Fatalf("%d departed and %d gave up of %d, %d of whom were cancelled; %d wait", departed.Load(), gone.Load(), callers, leaves, q.Waiting())
			}
			cancel()
			b.permits.Store(0)
		}
		if q.spare() == nil {
			t.Error("no memory of a crowd was used again: no test")
		}
	})
}

// A pool would cost callers that come one by one more than it saves.
func TestOnlyTheMemoryOfACrowdIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBringing()
		q := NewQueue(b)
		for _, n := range []int{1, crowd - 1, crowd} {
			var all sync.WaitGroup
			for range n {
				all.Go(func() { wait(t, q) })
			}
			synctest.Wait()
			b.bring(n)
			all.Wait()
			if pooled := q.spare() != nil; pooled != (n == crowd) {
				t.Errorf("after %d departures at once the memory is reused: %t", n, pooled)
			}
		}
	})
}
