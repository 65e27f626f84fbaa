package learning_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/throttle"
)

// A limit learned under earlier limits does not bound calls under later ones.
func TestLimitsThatAreSetReplaceWhatBoundsLearning(t *testing.T) {
	t.Parallel()
	fifty, most := throttle.TokenBucket(50, time.Second, 10), throttle.TokenBucket(500, time.Second, 10)
	tests := map[string]struct{ from, to []throttle.Limit }{
		"raised":  {[]throttle.Limit{fifty}, []throttle.Limit{most}},
		"removed": {[]throttle.Limit{fifty}, nil},
		"made":    {nil, []throttle.Limit{most}},
	}
	for name, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			served, refuse := 0, false
			var mu sync.Mutex
			client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
				mu.Lock()
				defer mu.Unlock()
				if refuse {
					refuse = false
					return http.Header{}, 429, nil
				}
				served++
				return http.Header{}, 200, nil
			})
			transport := client.Transport.(*weir.Transport)
			transport.Limits = test.from
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for ctx.Err() == nil {
						harness.Call(client, "http://vendor.example/", time.Hour)
					}
				})
			}
			step := func(d time.Duration) int {
				mu.Lock()
				before := served
				mu.Unlock()
				time.Sleep(d)
				mu.Lock()
				defer mu.Unlock()
				return served - before
			}
			step(2 * time.Second)
			mu.Lock()
			refuse = true
			mu.Unlock()
			rest := 10 * time.Second
			if testing.Short() {
				rest /= 4
			}
			step(rest)
			if err := transport.SetLimits(test.to...); err != nil {
				t.Error(err)
			}
			step(rest)
			if got := step(2 * time.Second); got < 900 {
				t.Errorf("limits %s: %d served in 2 s, want 900 or more", name, got)
			}
			cancel()
			wg.Wait()
		})
	}
}
