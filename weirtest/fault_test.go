package weirtest_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/weirtest"
)

func TestDelayIsOfGrantedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := weirtest.New(t, weirtest.InFlight(1))
		vendor.Faults = []weirtest.Fault{{Delay: time.Second}}
		client := vendor.Client()
		go get(t, client, vendor.URL)
		synctest.Wait()
		if status, _ := get(t, client, vendor.URL); status != 429 || !time.Now().Equal(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%d at %v, want a refusal at once", status, time.Now())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if a := vendor.Arrivals()[0]; a.Status != 200 {
			t.Errorf("after the delay the first request is %+v", a)
		}
	})
}

func TestFaultsHitTheirRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := weirtest.New(t)
		vendor.Faults = []weirtest.Fault{
			{First: 2, Last: 3, Status: 502},
			{First: 4, Last: 4, Reset: true},
			{First: 5, Last: 5, Hang: true},
			{First: 6, Delay: time.Second},
		}
		client := vendor.Client()
		for i, want := range []int{200, 502, 502, 0, 0, 200} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, vendor.URL, nil)
			began, got := time.Now(), 0
			if resp, err := client.Do(req); err == nil {
				got = resp.StatusCode
				resp.Body.Close()
			}
			cancel()
			if got != want {
				t.Errorf("request %d = %d, want %d", i+1, got, want)
			}
			if took := time.Since(began); i == 5 && took != time.Second || i == 4 && took != time.Minute {
				t.Errorf("request %d took %v", i+1, took)
			}
		}
		vendor.Check(t)
	})
}
