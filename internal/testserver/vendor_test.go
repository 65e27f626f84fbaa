package testserver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// ask sends one request to the vendor without a server.
func ask(v *testserver.Vendor, header ...string) *http.Response {
	r := httptest.NewRequest(http.MethodPost, "/charges", strings.NewReader("body"))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, r)
	return w.Result()
}

func TestZeroVendorAnswers(t *testing.T) {
	var v testserver.Vendor
	if got := ask(&v).StatusCode; got != 200 {
		t.Errorf("status = %d, want 200", got)
	}
}

func TestVendorRecordsBeforeItAnswers(t *testing.T) {
	v := &testserver.Vendor{
		Limits:   []testserver.Limit{testserver.FixedWindow(4, 24*time.Hour)},
		Key:      testserver.KeyHeader("Authorization"),
		Cost:     func(*http.Request) int { return 3 },
		IDHeader: "X-Trace",
	}
	before := time.Now()
	ask(v, "Authorization", "k1", "X-Trace", "t1")
	ask(v, "Authorization", "k1")
	got := v.Arrivals()
	if len(got) != 2 {
		t.Fatalf("arrivals = %d, want 2", len(got))
	}
	first, second := got[0], got[1]
	if first.Wall.Before(before) || first.At != first.Wall.Sub(v.Start()) {
		t.Errorf("instant = %v after the start, at %v", first.At, first.Wall)
	}
	if first.Answered < first.At {
		t.Errorf("answered at %v, before it came at %v", first.Answered, first.At)
	}
	first.At, first.Wall, first.Answered = 0, time.Time{}, 0
	want := testserver.Arrival{Method: "POST", Path: "/charges", Key: "k1", ID: "t1", Cost: 3, Granted: true, Status: 200}
	if !reflect.DeepEqual(first, want) {
		t.Errorf("arrival = %+v, want %+v", first, want)
	}
	if second.Granted || second.Status != 429 || second.Over == nil || *second.Over != v.Limits[0] || second.Header == nil {
		t.Errorf("second = %+v, want a refusal", second)
	}
	got[0].Status = 0
	if v.Arrivals()[0].Status != 200 {
		t.Error("Arrivals() is not a copy")
	}
}

func TestVendorRefusesAsConfigured(t *testing.T) {
	v := &testserver.Vendor{
		Limits:        []testserver.Limit{testserver.TokenBucket(1, time.Hour, 1)},
		Styles:        []testserver.Style{testserver.RetryAfterSeconds, testserver.RateLimit},
		RefusalStatus: 503,
		RefusalBody:   `{"error":"slow down"}`,
	}
	ask(v)
	resp := ask(v)
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 503 || string(body) != v.RefusalBody {
		t.Errorf("refusal = %d %q", resp.StatusCode, body)
	}
	if got := resp.Header.Get("Retry-After"); got != "3600" {
		t.Errorf("Retry-After = %q, want 3600", got)
	}
	if resp.Header.Get("RateLimit") == "" {
		t.Error("no RateLimit: styles do not combine")
	}
}

func TestConcurrencyCountsCallsInService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testserver.Vendor{
			Limits:  []testserver.Limit{testserver.Concurrency(2)},
			Styles:  []testserver.Style{testserver.RetryAfterSeconds, testserver.XRateLimitDelta},
			Service: time.Second,
		}
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() { ask(v) })
		}
		synctest.Wait()
		refused := ask(v)
		if refused.StatusCode != 429 || refused.Header.Get("Retry-After") != "" {
			t.Errorf("third = %d, Retry-After %q, want 429 and none", refused.StatusCode, refused.Header.Get("Retry-After"))
		}
		calls.Wait()
		if got := ask(v).StatusCode; got != 200 {
			t.Errorf("after the service = %d, want 200", got)
		}
	})
}

func TestConcurrencyCountsCosts(t *testing.T) {
	v := &testserver.Vendor{
		Limits: []testserver.Limit{testserver.Concurrency(5)},
		Cost:   func(*http.Request) int { return 3 },
	}
	inner := 0
	v.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inner = ask(v).StatusCode })
	if got := ask(v).StatusCode; got != 200 || inner != 429 {
		t.Errorf("statuses = %d, and %d inside, want 200 and 429", got, inner)
	}
}

func TestHandlerThatTakesOverIsNotRecorded(t *testing.T) {
	v := &testserver.Vendor{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	})}
	server := testserver.Run(t, testserver.Listen, v)
	if _, err := get(server.Client(), server.URL); err == nil {
		t.Error("GET = nil error")
	}
	server.Close()
	if got := v.Arrivals().Count(0); got != 1 {
		t.Errorf("statuses = %v, want none", v.Arrivals().Statuses())
	}
}

func TestAllLimitsMustGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testserver.Vendor{Limits: []testserver.Limit{
			testserver.TokenBucket(1, time.Second, 1),
			testserver.SlidingLog(2, time.Minute),
		}}
		var got []int
		for range 4 {
			got = append(got, ask(v).StatusCode, ask(v).StatusCode)
			time.Sleep(time.Second)
		}
		want := []int{200, 429, 200, 429, 429, 429, 429, 429}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("statuses = %v, want %v", got, want)
			}
		}
	})
}

func TestSetLimitsKeepsTheCount(t *testing.T) {
	tests := []struct {
		name          string
		before, after testserver.Limit
		want          int // granted of ten at once after the change, with five granted before
	}{
		{"bucket, lower burst", testserver.TokenBucket(1, time.Hour, 10), testserver.TokenBucket(1, time.Hour, 3), 3},
		{"bucket, higher burst", testserver.TokenBucket(1, time.Hour, 10), testserver.TokenBucket(1, time.Minute, 20), 5},
		{"window, lower", testserver.FixedWindow(10, time.Hour), testserver.FixedWindow(7, time.Hour), 2},
		{"window, below the count", testserver.FixedWindow(10, time.Hour), testserver.FixedWindow(3, time.Hour), 0},
		{"log, lower", testserver.SlidingLog(10, time.Hour), testserver.SlidingLog(6, time.Hour), 1},
		{"another algorithm", testserver.SlidingLog(10, time.Hour), testserver.FixedWindow(6, time.Hour), 6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testserver.Vendor{Limits: []testserver.Limit{tt.before}}
				for range 5 {
					ask(v)
				}
				v.SetLimits(tt.after)
				for range 10 {
					ask(v)
				}
				if got := len(v.Arrivals().Granted()) - 5; got != tt.want {
					t.Errorf("granted after the change = %d, want %d", got, tt.want)
				}
			})
		})
	}
}

func TestSetLimitsWhileCallsFly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testserver.Vendor{Service: time.Second}
		var calls sync.WaitGroup
		calls.Go(func() { ask(v) })
		synctest.Wait()
		v.SetLimits(testserver.Concurrency(1))
		calls.Go(func() { ask(v) })
		calls.Wait()
		for range 2 {
			calls.Go(func() { ask(v) })
		}
		calls.Wait()
		if got := v.Arrivals().Count(200); got != 3 {
			t.Errorf("granted = %d, want 3", got)
		}
	})
}

func TestSkewMovesEveryTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.FixedWindow(1, time.Hour)},
			Styles: []testserver.Style{testserver.RetryAfterDate, testserver.XRateLimitEpoch},
			Skew:   3*time.Hour + 10*time.Minute,
		}
		ask(v)
		h := ask(v).Header
		for field, want := range map[string]string{
			"Date":              "Sat, 01 Jan 2000 03:10:00 GMT",
			"Retry-After":       "Sat, 01 Jan 2000 04:00:00 GMT",
			"X-Ratelimit-Reset": "946699200",
		} {
			if got := h.Get(field); got != want {
				t.Errorf("%s = %s, want %s", field, got, want)
			}
		}
	})
}

// At full speed a vendor that reports whole seconds looks used up on nearly every success.
func TestCoarseSaysNoneRemainingAtFullSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.TokenBucket(200, time.Second, 20)},
			Styles: []testserver.Style{testserver.Coarse},
		}
		none := 0
		for i := range 420 {
			if i >= 20 {
				time.Sleep(5 * time.Millisecond)
			}
			resp := ask(v)
			if resp.StatusCode != 200 || resp.Header.Get("RateLimit-Reset") != "1" {
				t.Fatalf("answer %d = %d %v", i, resp.StatusCode, resp.Header)
			}
			if resp.Header.Get("RateLimit-Remaining") == "0" {
				none++
			}
		}
		if none != 401 {
			t.Errorf("%d successes said that none remain, want 401", none)
		}
	})
}

func TestRecordIsCompleteWhenTheClientHasTheAnswer(t *testing.T) {
	tests := map[string]struct {
		handler http.HandlerFunc
		want    int
	}{
		"silent":  {func(http.ResponseWriter, *http.Request) {}, 200},
		"writes":  {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("x")) }, 200},
		"status":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204},
		"flushes": {func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); <-r.Context().Done() }, 200},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := &testserver.Vendor{Handler: tt.handler}
			server := testserver.Run(t, testserver.Pipe, v)
			resp, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got := v.Arrivals()[0].Status; got != tt.want {
				t.Errorf("recorded status = %d, want %d", got, tt.want)
			}
		})
	}
}

func TestFastestIsWhatTheLimitsGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble begins at a full second
		tests := []struct {
			name   string
			limits []testserver.Limit
			calls  int
			want   time.Duration
		}{
			{"no limit", nil, 100, 0},
			{"calls in flight", []testserver.Limit{testserver.Concurrency(2)}, 100, 0},
			{"bucket", []testserver.Limit{testserver.TokenBucket(200, time.Second, 20)}, 2000, 9900 * time.Millisecond},
			{"window", []testserver.Limit{testserver.FixedWindow(100, 3*time.Second)}, 301, 9 * time.Second},
			{"window at first use", []testserver.Limit{testserver.FirstUseWindow(100, 3*time.Second)}, 300, 6 * time.Second},
			{"log", []testserver.Limit{testserver.SlidingLog(100, 3*time.Second)}, 301, 9 * time.Second},
			{"two", []testserver.Limit{testserver.TokenBucket(10, time.Second, 1), testserver.FirstUseWindow(5, time.Second)}, 6, time.Second},
		}
		for _, tt := range tests {
			v := &testserver.Vendor{Limits: tt.limits}
			if got := v.Fastest(tt.calls); got != tt.want {
				t.Errorf("%s: %d calls within %v, want %v", tt.name, tt.calls, got, tt.want)
			}
		}
	})
}

func TestSpreadIsAddedToService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testserver.Vendor{Service: 40 * time.Millisecond, Spread: 40 * time.Millisecond}
		least, most := time.Hour, time.Duration(0)
		for range 100 {
			began := time.Now()
			ask(v)
			took := time.Since(began)
			least, most = min(least, took), max(most, took)
		}
		if least < 40*time.Millisecond || most >= 80*time.Millisecond || most-least < 20*time.Millisecond {
			t.Errorf("answers took %v to %v, want them spread over 40ms to 80ms", least, most)
		}
	})
}
