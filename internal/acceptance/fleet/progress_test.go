package fleet_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// Over sockets, in real time: traffic of all processes is back seconds after one of them ends a long
// pause, whichever began it.
func TestTrafficIsBackAfterResume(t *testing.T) {
	vendor := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer vendor.Close()
	redisStore := func(t *testing.T) func() throttle.Store {
		server := redistest.Start(t)
		return func() throttle.Store {
			client := redis.NewClient(&redis.Options{Addr: server.Addr()})
			store := distributed.New(client, "vendor")
			t.Cleanup(func() { _, _ = store.Close(), client.Close() })
			return store
		}
	}
	fileStore := func(t *testing.T) func() throttle.Store {
		dir := t.TempDir() + "/weir"
		return func() throttle.Store {
			store := &hostlocal.Store{Dir: dir}
			t.Cleanup(func() { _ = store.Close() })
			return store
		}
	}
	for name, stores := range map[string]func(*testing.T) func() throttle.Store{"redis": redisStore, "files": fileStore} {
		t.Run(name, func(t *testing.T) {
			open := stores(t)
			var transports [2]*weir.Transport
			served := func(i int) bool {
				resp, err := (&http.Client{Transport: transports[i]}).Get(vendor.URL)
				if err == nil {
					resp.Body.Close()
				}
				return err == nil
			}
			for i := range transports {
				transports[i] = &weir.Transport{Store: open(), Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 10)}}
				t.Cleanup(func() { transports[i].Close() })
				if !served(i) {
					t.Fatalf("process %d was not served before the pause", i)
				}
			}
			key := transports[0].Snapshot()[0].Key
			for resumer := range transports {
				if err := transports[0].Pause(key, time.Hour); err != nil {
					t.Fatal(err)
				}
				for i := range transports {
					for began := time.Now(); served(i); time.Sleep(time.Millisecond) {
						if time.Since(began) > 10*time.Second {
							t.Fatalf("process %d is served 10 s after a pause began", i)
						}
					}
				}
				if err := transports[resumer].Resume(key); err != nil {
					t.Fatal(err)
				}
				for i := range transports {
					began := time.Now()
					for n := 0; n < 20; time.Sleep(time.Millisecond) {
						if served(i) {
							n++
						}
						if time.Since(began) > 10*time.Second {
							t.Fatalf("process %d: %d calls served in the 10 s since process %d ended the pause, want 20", i, n, resumer)
						}
					}
				}
			}
		})
	}
}
