package reserve

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// What was promised at a slow pace is free once that pace is revoked: of the configured
// limits too, though the call that revokes it grants nothing.
func TestWhatIsRevokedIsFreeOfEachLimit(t *testing.T) {
	c := newTeam(t)
	slow := store.Pacing{Counted: true, Interval: 5 * time.Second}
	all := make([]*member, 4)
	for i := range all {
		all[i] = c.join(slow, throttle.TokenBucket(1000, time.Second, 5))
	}
	all[0].send("slow")
	for _, s := range all {
		eventually(t, "it is applied", func() bool { s.limiter.Flush(); return len(s.applied()) == 1 })
	}
	all[0].call(t)
	went := make(chan time.Time, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	defer calling.Wait()
	defer cancel()
	for _, s := range all {
		calling.Go(func() {
			for s.queue.Wait(ctx) == nil {
				went <- time.Now()
			}
		})
	}
	eventually(t, "each is promised a permit", func() bool {
		return !slices.ContainsFunc(all, func(s *member) bool { return inHand(s.limiter) == 0 })
	})
	for _, s := range all {
		s.mu.Lock()
		s.pace.Interval = 5 * time.Millisecond
		s.mu.Unlock()
	}
	revoked := time.Now()
	all[1].add(store.Entry{Data: []byte("fast"), Revoke: true})
	all[1].limiter.Flush()
	after := 0
	for after < 2 { // the first may be one of the slow pace
		if (<-went).After(revoked) {
			after++
		}
	}
	if took := time.Since(revoked); took > 4*time.Second {
		t.Errorf("the second departure after the pace was revoked came %v later, want a few ms", took)
	}
}

// Permits that were promised at a slow pace do not delay a replica that asks at a fast one:
// all that is owed counts at the new pace, though nobody revokes the old one.
func TestAFastPaceOwesLittleForASlowOne(t *testing.T) {
	c := newTeam(t)
	all := make([]*member, 5)
	for i := range all {
		all[i] = c.join(store.Pacing{Counted: true, Interval: 2 * time.Second})
	}
	all[0].send("slow")
	for _, s := range all {
		eventually(t, "it is applied", func() bool { s.limiter.Flush(); return len(s.applied()) == 1 })
	}
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	defer calling.Wait()
	defer cancel()
	all[0].call(t)
	for _, s := range all[:4] {
		calling.Go(func() { _ = s.queue.Wait(ctx) })
	}
	eventually(t, "each is promised a permit", func() bool {
		return !slices.ContainsFunc(all[:4], func(s *member) bool { return inHand(s.limiter) == 0 })
	})
	for _, s := range all {
		s.mu.Lock()
		s.pace.Interval = 20 * time.Millisecond
		s.mu.Unlock()
	}
	asked := time.Now()
	all[4].send("fast")
	all[4].call(t)
	if took := time.Since(asked); took > 4*time.Second {
		t.Errorf("the next departure after the pace became fast came %v later, want 0.1 s", took)
	}
}

// Of two replicas one receives no message that a pace was revoked: it spends what it holds, one
// run of that pace, beside the new one, and learns of it with its next call.
func TestAReplicaThatMissesARevocationSpendsOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow, replicas = 10 * time.Millisecond, 2
		server := redispipe.Start(t, time.Millisecond)
		all := make([]*member, replicas)
		for i := range all {
			l := open(t, newHub(t, server.Client(t)))
			all[i] = &member{&recorder{pace: store.Pacing{Counted: true, Interval: slow, TTL: time.Minute}}, l, shaping.NewQueue(l)}
			all[i].limiter.Replicate(all[i].recorder)
		}
		var went atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		var calling sync.WaitGroup
		all[0].send("slow")
		for _, s := range all {
			for len(s.applied()) == 0 { // until then it lets all go
				s.limiter.Flush()
				time.Sleep(time.Millisecond)
			}
		}
		for _, s := range all {
			for range 16 {
				calling.Go(func() {
					for s.queue.Wait(ctx) == nil {
						went.Add(1)
					}
				})
			}
		}
		time.Sleep(time.Second)
		all[1].limiter.Link.Stop() // it receives no messages any more
		for i := 0; inHand(all[1].limiter) < 4; i++ {
			if time.Sleep(time.Millisecond); i == 1000 {
				t.Fatal("no run of four in a second")
			}
		}
		for _, s := range all {
			s.mu.Lock()
			s.pace.Interval = slow / 2
			s.mu.Unlock()
		}
		all[0].add(store.Entry{Data: []byte("fast"), Revoke: true})
		all[0].limiter.Flush()
		before, window := went.Load(), 500*time.Millisecond
		time.Sleep(window)
		more := went.Load() - before - 1 - int64(2*window/slow)
		cancel()
		calling.Wait()
		if most := int64(1 + int(all[0].limiter.Hub.Set.Horizon/slow)/replicas); more < 1 || more > most {
			t.Errorf("%d departed beyond the new pace, want what who missed the news held: %d at most", more, most)
		}
	})
}
