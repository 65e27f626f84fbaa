package shaping_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A line reports its callers: a number for each class and tenant.
func TestStandingsCountClassesAndTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := throttle.Local{}.Limiter("", throttle.TokenBucket(1, time.Hour, 1))
		if err != nil {
			t.Fatal(err)
		}
		q := shaping.NewQueue(limiter)
		if got := q.Standings(); got != nil {
			t.Errorf("an empty line has %v", got)
		}
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for tenant, n := range map[string]int{"": 2, "acme": 3, "umbrella": 1} {
			for range n {
				all.Go(func() { _ = q.Wait(shaping.WithTenant(ctx, tenant, 1)) })
			}
		}
		all.Go(func() { _ = q.Wait(shaping.WithPriority(ctx, shaping.PriorityHigh)) })
		synctest.Wait()
		want := []shaping.Standing{{Tenant: "acme", Waiting: 3}, {Waiting: 2}, {Priority: shaping.PriorityHigh, Waiting: 1}, {Tenant: "umbrella", Waiting: 1}}
		if got := q.Standings(); !slices.Equal(got, want) {
			t.Errorf("in line are %v, want %v", got, want)
		}
		cancel()
		all.Wait()
		if got := q.Standings(); len(got) > 0 {
			t.Errorf("a line that all have left has %v", got)
		}
	})
}
