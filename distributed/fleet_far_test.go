package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Small fleets far from Redis use the whole quota if enough callers wait in line: in all, twice the
// permits that fall due in a round trip.
func TestAFarRedisIsUsedInFull(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		trip     time.Duration
		replicas int
	}{
		{20 * time.Millisecond, 1},
		{20 * time.Millisecond, 4},
		{80 * time.Millisecond, 1},
		{80 * time.Millisecond, 4},
	} {
		t.Run(fmt.Sprintf("%v from %d", test.trip, test.replicas), func(t *testing.T) {
			t.Parallel()
			c := patiently(throttle.TokenBucket(rate, time.Second, 1))
			c.Callers = int(2*rate*test.trip.Seconds())/test.replicas + 1
			f := newFleet(t, plan{members: test.replicas, config: c})
			for _, link := range f.links {
				link.Delay(test.trip)
			}
			f.steady()
			f.pass(time.Second)
			from := now()
			f.pass(2 * time.Second)
			f.used(from, now())
			f.judge()
		})
	}
}
