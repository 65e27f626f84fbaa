package distributed

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// What was promised at a slow pace is free once that pace is revoked: of the configured
// limits too, though the call that revokes it grants nothing.
func TestWhatIsRevokedIsFreeOfEachLimit(t *testing.T) {
	c := newClass(t)
	slow := throttle.Pacing{Counted: true, Interval: 500 * time.Millisecond}
	all := make([]*seat, 4)
	for i := range all {
		all[i] = c.seat(slow, throttle.TokenBucket(1000, time.Second, 5))
	}
	all[0].tell("slow")
	for _, s := range all {
		eventually(t, "it is heard", func() bool { s.limiter.Flush(); return len(s.knows()) == 1 })
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
		return !slices.ContainsFunc(all, func(s *seat) bool { return InHand(s.limiter) == 0 })
	})
	for _, s := range all {
		s.mu.Lock()
		s.pace.Interval = 5 * time.Millisecond
		s.mu.Unlock()
	}
	told := time.Now()
	all[1].say(throttle.Entry{Data: []byte("fast"), Revoke: true})
	all[1].limiter.Flush()
	after := 0
	for after < 2 { // the first may be one of the slow pace
		if (<-went).After(told) {
			after++
		}
	}
	if took := time.Since(told); took > time.Second {
		t.Errorf("the second departure after the pace was revoked came %v later, want a few ms", took)
	}
}
