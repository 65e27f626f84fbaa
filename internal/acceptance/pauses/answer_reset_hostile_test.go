package pauses_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
)

// tryGet sends one GET within a time, and returns the caller's error.
func tryGet(client *http.Client, url string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	resp, err := client.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func quota(limit, left, reset string) http.Header {
	return http.Header{"X-Ratelimit-Limit": {limit}, "X-Ratelimit-Remaining": {left}, "X-Ratelimit-Reset": {reset}}
}

// Hostile and mistaken answers: a reported limit of zero stops no call.
func TestResetOfAZeroLimitStopsNobody(t *testing.T) {
	for _, learns := range []weir.Learning{weir.LearnOn, weir.LearnOff} {
		synctest.Test(t, func(t *testing.T) {
			client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) { return quota("0", "0", "30"), 200, nil })
			transport := client.Transport.(*weir.Transport)
			transport.Learn, transport.WaitForReset = learns, true
			if err := tryGet(client, "http://v.example/", time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := tryGet(client, "http://v.example/", 30*24*time.Hour); err != nil {
				t.Errorf("Learn %d: a month later: %v; the reset was 30 s away", learns, err)
			}
		})
	}
}

// A wrong reset delays the lane for an hour at most.
func TestFarResetHoldsForAnHour(t *testing.T) {
	for _, learns := range []weir.Learning{weir.LearnOn, weir.LearnOff} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
				if n++; n == 1 {
					return quota("100", "0", "2160000"), 200, nil // 25 days
				}
				return http.Header{}, 200, nil
			})
			transport := client.Transport.(*weir.Transport)
			transport.Learn, transport.WaitForReset = learns, true
			if err := tryGet(client, "http://v.example/", time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := tryGet(client, "http://v.example/", time.Minute); !errors.Is(err, weir.ErrPaused) {
				t.Errorf("at once: %v", err)
			}
			time.Sleep(61 * time.Minute)
			if err := tryGet(client, "http://v.example/", 23*24*time.Hour); err != nil {
				t.Errorf("Learn %d: after an hour, with 23 days of patience: %v", learns, err)
			}
		})
	}
}

// Resume ends it.
func TestResumeEndsAWaitForReset(t *testing.T) {
	for _, forget := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
				if n++; n == 1 {
					return quota("100", "0", "100"), 200, nil
				}
				return http.Header{}, 200, nil
			})
			transport := client.Transport.(*weir.Transport)
			transport.Learn, transport.WaitForReset = weir.LearnOff, true
			if err := tryGet(client, "http://v.example/", time.Minute); err != nil {
				t.Fatal(err)
			}
			do := transport.Resume
			if forget {
				do = transport.Forget
			}
			if err := do("v.example"); err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", transport.Snapshot()[0].Paused)
			if err := tryGet(client, "http://v.example/", 30*time.Second); err != nil {
				t.Errorf("forget %v: after Resume: %v", forget, err)
			}
		})
	}
}

// In the lane shared by keys it is unknown whose quota is spent.
func TestOneKeyClosesNoSharedLane(t *testing.T) {
	for _, status := range []int{429, 200} {
		synctest.Test(t, func(t *testing.T) {
			client := harness.LearningFrom(t, func(req *http.Request) (http.Header, int, error) {
				if req.URL.Host != "good.example" {
					h := quota("100", "0", "3000")
					if status == 429 {
						h.Set("Retry-After", "3000")
					}
					return h, status, nil
				}
				return http.Header{}, 200, nil
			})
			transport := client.Transport.(*weir.Transport)
			transport.Learn, transport.WaitForReset, transport.MaxLanes = weir.LearnOff, true, 1
			for _, host := range []string{"first", "evil"} {
				_ = tryGet(client, "http://"+host+".example/", time.Minute)
			}
			if err := tryGet(client, "http://good.example/", time.Minute); err != nil {
				t.Errorf("%d: another key: %v", status, err)
			}
		})
	}
}
