package hostlocal_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A twins is two processes that share a lane, and a clock that may be set.
type twins struct {
	dir    string
	stores [2]*hostlocal.Store
	queues [2]*shaping.Queue
	set    atomic.Int64 // by how much the clock is ahead, in nanoseconds
}

// newTwins returns two processes with a limit each.
func newTwins(t *testing.T, limits ...throttle.Limit) *twins {
	p := &twins{dir: private(t)}
	for i, limit := range limits {
		p.stores[i] = &hostlocal.Store{Dir: p.dir}
		hostlocal.SetClock(p.stores[i], func(throttle.Instant) throttle.Instant {
			return throttle.InstantOf(time.Now()).Add(time.Duration(p.set.Load()))
		})
		limiter, err := p.stores[i].Limiter("k", limit)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.stores[i].Close() })
		p.queues[i] = shaping.NewQueue(limiter)
	}
	return p
}

// A caller in line departs, or is rejected, soon after its cause to wait has ended, however late it
// was to ask again before.
func TestCallersInLineSeeWhatEndsTheirWait(t *testing.T) {
	fast, slow := throttle.TokenBucket(100, time.Second, 20), throttle.TokenBucket(1, time.Hour, 1)
	for name, test := range map[string]struct {
		first, second throttle.Limit // of the processes; the first has a caller in line
		begin, end    func(p *twins)
		within        time.Duration // of the end
		err           error
	}{
		"stricter limits leave with their process": {
			fast, slow, func(p *twins) { _ = p.queues[1].Wait(context.Background()) }, func(p *twins) { _ = p.stores[1].Close() },
			15 * time.Second, nil,
		},
		"all limits are raised": {
			slow, slow, func(p *twins) { _ = p.queues[1].Wait(context.Background()) },
			func(p *twins) { _, _ = p.queues[0].Tune(fast), p.queues[1].Tune(fast) }, 15 * time.Second, nil,
		},
		"a pause ends although the clock was set back": {
			fast, fast, func(p *twins) { p.queues[1].Pause(time.Minute) }, func(p *twins) { p.set.Store(-int64(time.Hour)) },
			62 * time.Second, nil,
		},
		"an operator ends a pause after the files were removed": {
			fast, fast, func(p *twins) { p.queues[0].Pause(time.Hour) },
			func(p *twins) { _ = os.RemoveAll(p.dir); p.queues[1].Reconcile(throttle.Fact{Resumed: true}) }, 5 * time.Second, nil,
		},
		"the store is closed": {
			slow, slow, func(p *twins) { _ = p.queues[1].Wait(context.Background()) }, func(p *twins) { _ = p.stores[0].Close() },
			0, hostlocal.ErrClosed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newTwins(t, test.first, test.second)
				test.begin(p)
				left := make(chan error)
				go func() { left <- p.queues[0].Wait(t.Context()) }()
				time.Sleep(2 * time.Second)
				test.end(p)
				ended := time.Now()
				if err := <-left; !errors.Is(err, test.err) || time.Since(ended) > test.within {
					t.Errorf("the caller left %v later with %v, want %v within %v", time.Since(ended), err, test.err, test.within)
				}
			})
		})
	}
}

// A pause holds as long as it says if the clock was set back while no process used the lane.
func TestPausesHoldAfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast := throttle.TokenBucket(100, time.Second, 20)
		p := newTwins(t, fast, fast)
		if err := p.queues[1].Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.set.Store(-int64(time.Hour))
		p.queues[0].Pause(time.Minute)
		paused := time.Now()
		if err := p.queues[1].Wait(t.Context()); err != nil || time.Since(paused) != time.Minute {
			t.Errorf("a caller departs %v after a pause of a minute began, with %v", time.Since(paused), err)
		}
	})
}
