package distributed_test

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// Processes whose joint demand is a third of what the vendor serves do not learn that as the limit.
// Waits stay short, and hardly any call is refused.
func TestLittleDemandOfAFleetIsNoLimit(t *testing.T) {
	if tooSlowHere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCompany(t)
		c.vendor.Limits = []testserver.Limit{testserver.TokenBucket(50, time.Second, 1)}
		for range 4 {
			c.join()
		}
		c.call(t, 30*time.Second, 15) // the limit is learned
		before := c.refused()
		took := c.call(t, 2*time.Minute, 15)
		slices.Sort(took)
		slow, refused := took[len(took)*99/100], c.refused()-before
		t.Logf("%d calls, p50 %v, p99 %v, %d refused", len(took), took[len(took)/2], slow, refused)
		if slow > time.Second || refused*100 > len(took) {
			t.Errorf("of %d calls 99 of 100 took up to %v, and %d were refused; want 1s, and one in 100", len(took), slow, refused)
		}
	})
}

// call makes the processes send rate calls a second together, at random instants, and returns how
// long each took.
func (c *company) call(t *testing.T, d time.Duration, rate float64) (took []time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	random := rand.New(rand.NewPCG(1, 2))
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
		client := &http.Client{Transport: c.all[random.IntN(len(c.all))]}
		all.Go(func() {
			began := time.Now()
			resp, err := client.Get(c.server.URL)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("call: %v, %v", resp, err)
				return
			}
			_ = resp.Body.Close()
			mu.Lock()
			took = append(took, time.Since(began))
			mu.Unlock()
		})
	}
	all.Wait()
	return took
}
