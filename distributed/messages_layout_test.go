package distributed_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Versions with the same layout share one quota. Versions with different layouts have separate
// quotas, and each logs that once a minute while both run.
func TestTwoLayoutsInOneNamespaceAreLogged(t *testing.T) {
	const rate, burst = 5, 1
	whole := orShort(150*time.Second, 70*time.Second)
	for next, quotas := range map[string]int{"1": 1, "2": 2} {
		if quotas > 1 && testing.Short() {
			continue
		}
		t.Run("layout "+next, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := throttle.LeakyBucket(rate, time.Second)
				f := newBubbleFleet(t, 1, time.Millisecond, limit)
				var journal [2]diary
				f.stores[0].Logger = journal[0].logger()
				store := distributed.New(f.server.Client(t), "fleet")
				store.Logger = journal[1].logger()
				distributed.SetLayout(store, next)
				defer store.Close()
				l, err := store.Limiter("vendor", limit)
				if err != nil {
					t.Fatal(err)
				}
				f.queues, f.left = append(f.queues, shaping.NewQueue(l)), append(f.left, nil)
				f.work(0, 4, whole)
				time.Sleep(time.Second)
				f.work(1, 4, whole)
				time.Sleep(5 * time.Second)
				for i := range journal {
					if logged := strings.Contains(journal[i].String(), "of another layout"); logged != (quotas == 2) {
						t.Errorf("after five seconds version %d has logged it: %v", i, logged)
					}
				}
				f.wg.Wait()
				due := int(rate * whole.Seconds())
				if n := len(f.all()); n > quotas*(due+burst) || n < quotas*due*95/100 {
					t.Errorf("%d departures, want %d times the %d that are due", n, quotas, due)
				}
				for i := range journal {
					lines := strings.Count(journal[i].String(), "of another layout")
					if most := int(whole/time.Minute) + 1; lines > most || (lines > 0) != (quotas == 2) {
						t.Errorf("version %d logs it %d times, want %d at most, and only if the layouts differ:\n%s", i, lines, most, journal[i].String())
					}
				}
				if quotas == 2 && !strings.Contains(journal[0].String(), "this=1 other=2") {
					t.Errorf("logged:\n%s", journal[0].String())
				}
			})
		})
	}
}
