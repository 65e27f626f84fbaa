package pauses_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/weirtest"
)

// Every call of a lane keeps to each reported time, even if the lane learns and the same call is
// refused repeatedly.
func TestEveryReportedPauseHoldsTheLane(t *testing.T) {
	for _, dialect := range []string{"retry-after-ms", "retry-after"} {
		for _, way := range []time.Duration{0, 2 * time.Millisecond, 10 * time.Millisecond} {
			t.Run(fmt.Sprint(dialect, " ", way), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					vendor := weirtest.New(t, weirtest.TokenBucket(50, time.Second, 10))
					vendor.Dialect, vendor.MaxRefusals, vendor.Delivery = weirtest.Named(dialect), 100, 2*way
					vendor.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(way) })
					transport := &weir.Transport{Base: vendor.Transport()}
					defer transport.Close()
					client := &http.Client{Transport: transport}
					var all sync.WaitGroup
					for worker := range 16 {
						all.Go(func() {
							for i := range 20 {
								req, _ := http.NewRequest(http.MethodGet, vendor.URL, nil)
								req.Header.Set("X-Request-Id", fmt.Sprint(worker, " ", i))
								resp, err := client.Do(req)
								if err != nil {
									t.Error(err)
									return
								}
								resp.Body.Close()
							}
						})
					}
					all.Wait()
					vendor.Check(t)
				})
			})
		}
	}
}
