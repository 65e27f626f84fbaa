package distributed_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// Redis loses all its state, or the last writes. The burst may be granted once more, but no
// additional rate.
func TestR20FlushGrantsOneBurstAtMost(t *testing.T) {
	t.Parallel()
	for _, l := range []throttle.Limit{
		throttle.TokenBucket(rate, time.Second, burst), throttle.LeakyBucket(rate, time.Second),
		throttle.SlidingLog(rate/5, 200*time.Millisecond), throttle.FixedWindow(rate/5, 200*time.Millisecond),
	} {
		t.Run(l.Algorithm.String(), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plan{members: 3, config: patiently(l)})
			f.steady()
			f.pass(moment)
			from := now()
			f.do("FLUSHALL")
			f.pass(moment)
			f.judge(f.lost(from, now()))
		})
	}
}

// Each of several flushes in a row costs no more than the first.
func TestR20FlushesInARowGrantOneBurstEach(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3, config: patiently()})
	f.steady()
	var spells []spell
	for range 5 {
		from := now()
		f.do("FLUSHALL")
		f.pass(moment / 2)
		spells = append(spells, f.lost(from, now()))
	}
	f.judge(spells...)
}

func TestR21ARestartedServerIsUsedAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3})
	f.steady()
	f.pass(moment)
	from := now()
	spells := f.suffer(3, moment, f.server.Kill, func() { f.server.Restart() })
	f.pass(moment)
	f.judge(append(spells, f.lost(from, now()))...)
}

// The promoted replica of Redis lacks the last departures.
func TestR9FailoverThatLostWritesGrantsOneBurstAtMost(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	stream := redistest.NewProxy(t, master.Addr())
	next := redistest.Start(t)
	var at atomic.Value
	at.Store(master.Addr())
	f := newFleet(t, plan{config: config{Redis: place{Addrs: []string{"moving"}}}})
	for range 3 {
		f.adopt(f.way(), redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", at.Load().(string))
		}}))
	}
	f.steady()
	next.Follow(stream.Addr())
	f.pass(moment)
	from := now()
	stream.Swallow()
	f.pass(moment / 2)
	spells := f.suffer(3, moment/2, master.Kill, func() {
		next.Promote()
		at.Store(next.Addr())
	})
	f.pass(moment)
	f.judge(append(spells, f.lost(from, now()))...)
}
