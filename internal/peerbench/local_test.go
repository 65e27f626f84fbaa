package peerbench

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/weirgo/weir/throttle"
)

// plenty is a burst that no run uses up, so that nothing ever waits although
// the rates are real ones.
const plenty = 1 << 30

// A decision is measured: it returns once the caller may depart.
type decision func(context.Context) error

// A floor is the least that a limiter can do: read the clock once and store one number.
type floor struct {
	started time.Time
	tat     atomic.Int64
}

func (f *floor) wait(context.Context) error {
	now := int64(time.Since(f.started))
	for {
		tat := f.tat.Load()
		if f.tat.CompareAndSwap(tat, max(tat, now)+1) {
			return nil
		}
	}
}

// errRefused is returned by limiters that would have to wait.
var errRefused = errors.New("refused where nothing should wait")

func granted(ok bool) error {
	if !ok {
		return errRefused
	}
	return nil
}

// BenchmarkLocal compares decisions that need not wait. Only those of Weir,
// x/time/rate's Wait and failsafe-go's Acquire take a context and could be
// cancelled. Limiters without a burst run at one permit per nanosecond, which no
// loop reaches.
func BenchmarkLocal(b *testing.B) {
	perSecond := throttle.TokenBucket(1_000_000, time.Second, plenty)
	perMinute := throttle.TokenBucket(600_000_000, time.Minute, plenty)
	odd := throttle.TokenBucket(7_777, time.Second, plenty)
	for _, who := range []struct {
		name string
		make func() decision
	}{
		{"floor", func() decision { return (&floor{started: time.Now()}).wait }},
		{"failsafe.TryAcquire", func() decision {
			l := ratelimiter.NewSmooth[any](1e9, time.Second)
			return func(context.Context) error { return granted(l.TryAcquirePermit()) }
		}},
		{"failsafe.Acquire", func() decision { return ratelimiter.NewSmooth[any](1e9, time.Second).AcquirePermit }},
		{"uber.Take", func() decision {
			l := uber.New(1e9)
			return func(context.Context) error { l.Take(); return nil }
		}},
		{"xtime.Allow", func() decision {
			l := rate.NewLimiter(1e6, plenty)
			return func(context.Context) error { return granted(l.Allow()) }
		}},
		{"xtime.Wait", func() decision { return rate.NewLimiter(1e6, plenty).Wait }},
		{"weir.Wait", func() decision { return weirQueue(perSecond).Wait }},
		{"weir.Wait-7777", func() decision { return weirQueue(odd).Wait }},
		{"weir.Wait-2-limits", func() decision { return weirQueue(perSecond, perMinute).Wait }},
	} {
		b.Run("who="+who.name+"/g=1", func(b *testing.B) { alone(b, who.make()) })
		b.Run("who="+who.name+"/g=64", func(b *testing.B) { together(b, who.make()) })
	}
}

// deadline returns a context like a request's: with a distant deadline, and a value of the
// caller's.
func deadline(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	tb.Cleanup(cancel)
	type key struct{}
	return context.WithValue(ctx, key{}, "caller")
}

func alone(b *testing.B, decide decision) {
	ctx := deadline(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := decide(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// together runs 64 goroutines.
func together(b *testing.B, decide decision) {
	ctx := deadline(b)
	b.SetParallelism(max(1, 64/runtime.GOMAXPROCS(0)))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := decide(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
