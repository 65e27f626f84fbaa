package distributed_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/throttle"
)

// A taker is a process whose fetches the test controls.
type taker struct {
	t *testing.T
	throttle.Limiter
}

func newTaker(t *testing.T, client *redis.Client, limit throttle.Limit) taker {
	store := distributed.New(client, "fleet")
	store.Logger = slog.New(slog.DiscardHandler)
	t.Cleanup(func() { _ = store.Close() })
	l, err := store.Limiter("vendor", limit)
	if err != nil {
		t.Fatal(err)
	}
	l.(throttle.Remote).Notify(func() {})
	return taker{t, l}
}

// fetch asks the store for a permit, or reports that none is wanted.
func (k taker) fetch(wants bool) {
	now := throttle.InstantOf(time.Now())
	n := 0
	if wants {
		n = 1
	}
	k.Limiter.(throttle.Remote).Fetch(now, n, func(yield func(throttle.Request) bool) {
		if wants {
			yield(throttle.Request{N: 1, Since: now})
		}
	})
	time.Sleep(10 * time.Millisecond)
}

// departs asks for a permit, and reports whether it holds now.
func (k taker) departs() bool {
	k.fetch(true)
	defer k.fetch(false)
	return k.takes()
}

func (k taker) takes() bool {
	now := throttle.InstantOf(time.Now())
	granted, err := k.Take(now, throttle.Request{N: 1, Since: now})
	if err != nil {
		k.t.Fatal(err)
	}
	return granted.At <= now
}

// A pause takes back the permit of a process that misses its message. The process's own later
// return of the permit does not count again, whether it stopped or called meanwhile.
func TestAPauseAndItsHolderGiveAPermitBackOnce(t *testing.T) {
	for _, calls := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			limit := throttle.TokenBucket(6, time.Minute, 1) // one in 10 s
			server := redispipe.Start(t, time.Millisecond)
			began := time.Now()
			till := func(d time.Duration) { time.Sleep(time.Until(began.Add(d))) }
			a, other := newTaker(t, server.DeafClient(t), limit), newTaker(t, server.Client(t), limit)
			if !a.departs() {
				t.Fatal("the first permit was not granted")
			}
			other.fetch(true) // holds the permit at 10 s
			a.fetch(true)     // the permit at 20 s
			now := throttle.InstantOf(time.Now())
			other.Reconcile(now, throttle.Fact{Until: now.Add(time.Second)})
			other.fetch(false)
			till(15 * time.Second)
			if !other.departs() {
				t.Fatal("no permit after the pause")
			}
			if calls {
				till(19500 * time.Millisecond)
				a.Settle(throttle.InstantOf(time.Now()), throttle.Grant{At: throttle.InstantOf(began)}, throttle.Request{N: 1}, throttle.Request{N: 1})
			} else {
				till(20200 * time.Millisecond)
				a.takes()
			}
			time.Sleep(100 * time.Millisecond)
			if other.departs() {
				t.Errorf("a permit %v after the last, want 10s; the other one calls: %v", time.Since(began.Add(15*time.Second)), calls)
			}
		})
	}
}
