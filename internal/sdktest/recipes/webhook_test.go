package recipes

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A customer whose endpoint hangs, fails or is removed delays no other customer.
func TestWebhooksOfCustomersAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := webhooks()
		var mu sync.Mutex
		came := map[string][]string{}
		before(t, transport, func(w http.ResponseWriter, req *http.Request) {
			_, _ = io.Copy(io.Discard, req.Body)
			mu.Lock()
			came[req.Host] = append(came[req.Host], req.Header.Get("Idempotency-Key"))
			mu.Unlock()
			switch req.Host {
			case "hangs.test":
				select {
				case <-req.Context().Done():
				case <-time.After(time.Hour):
				}
			case "fails.test":
				w.WriteHeader(http.StatusInternalServerError)
			case "gone.test":
				w.WriteHeader(http.StatusGone)
			}
		})
		client, began := &http.Client{Transport: transport}, time.Now()
		var sent sync.WaitGroup
		for n := range 12 {
			for host, want := range map[string]func(error) bool{
				"hangs.test": func(err error) bool { return err != nil },
				"fails.test": func(err error) bool { return err != nil && !errors.Is(err, errGone) },
				"gone.test":  func(err error) bool { return errors.Is(err, errGone) },
				"fine.test":  func(err error) bool { return err == nil && time.Since(began) == 0 },
			} {
				sent.Go(func() {
					if err := deliver(t.Context(), client, "https://"+host+"/hook", fmt.Sprint("evt_", n), []byte("{}")); !want(err) {
						t.Errorf("%s after %v: %v", host, time.Since(began), err)
					}
				})
			}
		}
		sent.Wait()
		mu.Lock() // a handler whose caller has given up may still run
		defer mu.Unlock()
		if len(came["fine.test"]) != 12 || len(came["gone.test"]) != 12 {
			t.Errorf("%d requests came to fine.test and %d to gone.test, want 12 each", len(came["fine.test"]), len(came["gone.test"]))
		}
		if n := len(came["fails.test"]); n <= 12 || n > 48 {
			t.Errorf("%d requests of 12 events came to fails.test, want retries, and 48 at most", n)
		}
		slices.Sort(came["fails.test"])
		if ids := slices.Compact(came["fails.test"]); len(ids) != 12 || ids[0] == "" {
			t.Errorf("the requests to fails.test have the keys %q, want one for each event", ids)
		}
	})
}
