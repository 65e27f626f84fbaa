package recipes

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/weirtest"
)

// A controller with two workers reconciles twelve objects at a vendor of one call a second,
// which refuses the first call for 30 s. None of them waits for long, and each object is done.
func TestReconcilesComeBackLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := weirtest.New(t, weirtest.TokenBucket(1, time.Second, 1))
		vendor.Faults = []weirtest.Fault{{First: 1, Last: 1, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"30"}}}}
		transport := &weir.Transport{Base: vendor.Transport(), Limits: []throttle.Limit{throttle.LeakyBucket(1, time.Second)}}
		client := &http.Client{Transport: transport}
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var longest time.Duration
		done := map[string]bool{}
		objects, err := controller.NewTypedUnmanaged("objects", controller.TypedOptions[reconcile.Request]{
			MaxConcurrentReconciles: 2,
			SkipNameValidation:      new(true),
			LogConstructor:          func(*reconcile.Request) logr.Logger { return logr.Discard() },
			Reconciler: reconcile.Func(func(ctx context.Context, object reconcile.Request) (reconcile.Result, error) {
				req, err := http.NewRequestWithContext(ctx, http.MethodPut, "https://api.example.com/"+object.Name, nil)
				if err != nil {
					return reconcile.Result{}, reconcile.TerminalError(err)
				}
				from := time.Now()
				after, err := callOrRequeue(transport, client, req)
				mu.Lock()
				defer mu.Unlock()
				longest = max(longest, time.Since(from))
				if err != nil {
					t.Errorf("%s: %v", object.Name, err)
				}
				if done[object.Name] = done[object.Name] || after == 0; len(done) == 12 && all(done) {
					cancel()
				}
				return reconcile.Result{RequeueAfter: after}, err
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		err = objects.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			for n := range 12 {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprint("object-", n)}})
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := objects.Start(ctx); err != nil {
			t.Error(err)
		}
		if longest > patience {
			t.Errorf("a worker waited for %v, want %v at most", longest, patience)
		}
		if took := time.Since(began); took < 40*time.Second || took > 90*time.Second {
			t.Errorf("12 objects took %v, want 30s of pause and 12s of calls, and 90s at most", took)
		}
		vendor.Check(t)
	})
}

// all reports whether each object is done.
func all(done map[string]bool) bool {
	for _, is := range done {
		if !is {
			return false
		}
	}
	return true
}
