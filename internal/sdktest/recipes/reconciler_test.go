package recipes

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/throttle"
)

// Two workers of the queue below controller-runtime reconcile twelve objects at a vendor of
// one call a second. None of them waits for long, and each object is done.
func TestReconcilesComeBackLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &weir.Transport{Limits: []throttle.Limit{throttle.LeakyBucket(1, time.Second)}}
		refusals := 1
		vendor := before(t, transport, func(w http.ResponseWriter, _ *http.Request) {
			if refusals > 0 {
				refusals--
				w.Header().Set("Retry-After", "30")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		client := &http.Client{Transport: transport}
		queue := workqueue.NewTypedDelayingQueue[string]()
		for n := range 12 {
			queue.Add(fmt.Sprint("object-", n))
		}
		began := time.Now()
		var longest time.Duration
		var mu sync.Mutex
		done := map[string]bool{}
		reconcile := func(name string) {
			defer queue.Done(name)
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://api.example.com/"+name, nil)
			from := time.Now()
			after, err := callOrRequeue(transport, client, req)
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, time.Since(from))
			switch {
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case after > 0:
				queue.AddAfter(name, after)
				return
			}
			if done[name] = true; len(done) == 12 {
				queue.ShutDown()
			}
		}
		var workers sync.WaitGroup
		for range 2 {
			workers.Go(func() {
				for {
					name, over := queue.Get()
					if over {
						return
					}
					reconcile(name)
				}
			})
		}
		workers.Wait()
		if longest > time.Second {
			t.Errorf("a worker waited for %v, want a second at most", longest)
		}
		if took := time.Since(began); took < 40*time.Second || took > 90*time.Second {
			t.Errorf("12 objects took %v, want 30s of pause and 12s of calls, and 90s at most", took)
		}
		vendor.Check(t)
	})
}
