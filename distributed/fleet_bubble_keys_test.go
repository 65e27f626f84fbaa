package distributed_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Customers use the rate of an account, whatever it saves. Replicas share the plan of each
// customer, and take turns at it and at the account, also if all plans together are hardly more.
// In one life of many, permits of the two keys miss each other: 0.92 of the rate was seen.
func TestCustomersUseTheRateOfTheirAccount(t *testing.T) {
	const rate, whole = 60, 10 * time.Second
	for _, c := range []struct{ replicas, customers, callers, burst, plan int }{
		{1, 20, 2, 1, 40}, {2, 3, 1, 1, 40}, {3, 2, 2, 1, 40}, {3, 2, 8, 1, 40}, {3, 2, 2, 10, 40}, {8, 3, 4, 1, 40},
		{3, 3, 8, 10, 24}, {8, 3, 4, 10, 24},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newBubbleFleet(t, c.replicas, time.Millisecond, throttle.TokenBucket(rate, time.Second, c.burst))
				f.meet()
				for replica, store := range f.stores {
					junction := new(shaping.Junction)
					account := junction.NewRoster("account", f.limiters[replica])
					for i := range c.customers {
						limiter, err := store.Limiter("customer"+strconv.Itoa(i), throttle.TokenBucket(c.plan, time.Second, 4))
						if err != nil {
							t.Fatal(err)
						}
						q := junction.NewQueue(junction.NewRoster(strconv.Itoa(i), limiter), account)
						f.workAt(q, replica, c.callers, whole)
					}
				}
				f.wg.Wait()
				tolerance := throttle.Tolerance(throttle.TokenBucket(rate, time.Second, c.burst))
				n, all := float64(len(f.all())), rate*whole.Seconds()
				if most := all + rate*tolerance.Seconds() + float64(c.burst); n < 0.85*all || n > most {
					t.Errorf("%.0f calls in %v, want %.0f to %.0f", n, whole, 0.85*all, most)
				}
				t.Logf("%.0f of %.0f calls, %d calls to Redis", n, all, f.server.Calls())
			})
		})
	}
}
