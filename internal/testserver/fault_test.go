package testserver_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

func TestFaultsHitWhatTheirBoundsSay(t *testing.T) {
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	tests := []struct {
		name  string
		fault testserver.Fault
		want  []int // numbers of the requests hit, of ten, one in each second from 0 s on
	}{
		{"no bounds", testserver.Fault{}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{"from", testserver.Fault{From: second(7)}, []int{8, 9, 10}},
		{"until", testserver.Fault{Until: second(2)}, []int{1, 2}},
		{"from and until", testserver.Fault{From: second(2), Until: second(4)}, []int{3, 4}},
		{"first", testserver.Fault{First: 9}, []int{9, 10}},
		{"last", testserver.Fault{Last: 1}, []int{1}},
		{"every", testserver.Fault{Every: 4}, []int{1, 5, 9}},
		{"every from the second", testserver.Fault{First: 2, Every: 3, Last: 8}, []int{2, 5, 8}},
		{"time and number", testserver.Fault{From: second(3), Last: 5}, []int{4, 5}},
		{"match", testserver.Fault{Match: func(r *http.Request) bool { return r.Header.Get("N") == "6" }}, []int{6}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.fault.Status = http.StatusServiceUnavailable
				v := &testserver.Vendor{Faults: []testserver.Fault{tt.fault}}
				var got []int
				for n := 1; n <= 10; n++ {
					if ask(v, "N", fmt.Sprint(n)).StatusCode == 503 {
						got = append(got, n)
					}
					time.Sleep(time.Second)
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("hit = %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestFirstFaultThatHitsActs(t *testing.T) {
	v := &testserver.Vendor{Faults: []testserver.Fault{
		{First: 2, Last: 2, Status: 500},
		{Last: 2, Status: 502},
	}}
	for i, want := range []int{502, 500, 200} {
		if got := ask(v).StatusCode; got != want {
			t.Errorf("status %d = %d, want %d", i+1, got, want)
		}
	}
	v.SetFaults(testserver.Fault{Status: 504})
	if got := ask(v).StatusCode; got != 504 {
		t.Errorf("status after SetFaults = %d, want 504", got)
	}
}

func TestAnswerSpendsNoPermit(t *testing.T) {
	v := &testserver.Vendor{
		Limits: []testserver.Limit{testserver.FixedWindow(1, 24*time.Hour)},
		Faults: []testserver.Fault{{Last: 3, Header: http.Header{"retry-after": {"2"}}, Size: 1 << 20}},
	}
	for range 3 {
		resp := ask(v)
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "2" || len(body) != 1<<20 {
			t.Errorf("storm = %d %v and %d bytes", resp.StatusCode, resp.Header, len(body))
		}
	}
	if got := ask(v).StatusCode; got != 200 {
		t.Errorf("after the storm = %d, want 200", got)
	}
}

// All ways of serving break in the same way.
var openers = map[string]func(http.Handler) (*testserver.Server, error){
	"loopback": testserver.Listen,
	"TLS":      testserver.ListenTLS,
	"pipe":     testserver.Pipe,
}

func TestResetEarlyGivesNoAnswer(t *testing.T) {
	for name, open := range openers {
		t.Run(name, func(t *testing.T) {
			v := &testserver.Vendor{Faults: []testserver.Fault{{First: 2, Do: testserver.ResetEarly, Match: isPost}}}
			server := testserver.Run(t, open, v)
			client := server.Client()
			mustGet(t, client, server.URL, 200)
			_, err := client.Post(server.URL, "text/plain", strings.NewReader("x"))
			closed := err != nil && strings.Contains(err.Error(), "http2: client conn is closed") // the body met the reset first
			if !closed && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("POST = %v, want a reset", err)
			}
			if got := v.Arrivals().Count(0); got != 1 {
				t.Errorf("unanswered = %d, want 1", got)
			}
		})
	}
}

func isPost(r *http.Request) bool { return r.Method == http.MethodPost }

func TestResetMidBodyBreaksTheBody(t *testing.T) {
	for name, open := range openers {
		t.Run(name, func(t *testing.T) {
			v := &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.ResetMidBody, Size: 1000}}}
			server := testserver.Run(t, open, v)
			resp, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if resp.StatusCode != 200 || err == nil {
				t.Errorf("answer = %d, %v, want 200 and an error", resp.StatusCode, err)
			}
			// Over HTTP/2 it depends on timing what the client still receives.
			if resp.ProtoMajor == 1 && (len(body) != 500 || !errors.Is(err, syscall.ECONNRESET)) {
				t.Errorf("body = %d bytes, then %v, want 500 and a reset", len(body), err)
			}
		})
	}
}

func TestHangLastsUntilTheClientLeaves(t *testing.T) {
	for name, open := range openers {
		t.Run(name, func(t *testing.T) {
			v := &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Hang}}}
			server := testserver.Run(t, open, v)
			client := server.Client()
			client.Timeout = 20 * time.Millisecond
			_, err := client.Post(server.URL, "text/plain", strings.NewReader("x"))
			if timeout, ok := err.(interface{ Timeout() bool }); !ok || !timeout.Timeout() {
				t.Errorf("POST = %v, want a timeout", err)
			}
		})
	}
}

func TestDeadIdleConnectionsAreFoundOnReuse(t *testing.T) {
	for _, name := range []string{"loopback", "pipe"} {
		t.Run(name, func(t *testing.T) {
			const dead = 16
			v := &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.CloseReused}}}
			together := newBarrier(dead)
			v.Handler = together
			server := testserver.Run(t, openers[name], v)
			client := server.Client()
			var calls sync.WaitGroup
			for range dead {
				calls.Go(func() { mustGet(t, client, server.URL, 200) })
			}
			calls.Wait()
			mustGet(t, client, server.URL, 200)

			got := v.Arrivals()
			if len(got) != 2*dead+1 || got.Count(200) != dead+1 || got.Count(0) != dead {
				t.Errorf("%d requests on the wire, %v; want %d of which %d unanswered", len(got), got.Statuses(), 2*dead+1, dead)
			}
			if got := server.Conns(); got != dead+1 {
				t.Errorf("Conns() = %d, want %d", got, dead+1)
			}
		})
	}
}

// newBarrier answers the first n requests when all have arrived, so that each has its own
// connection.
func newBarrier(n int) http.Handler {
	var all sync.WaitGroup
	all.Add(n)
	var mu sync.Mutex
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		if n > 0 {
			n--
			all.Done()
		}
		mu.Unlock()
		all.Wait()
	})
}

func TestCloseAfterSendsTheWholeAnswer(t *testing.T) {
	for _, name := range []string{"loopback", "pipe"} {
		t.Run(name, func(t *testing.T) {
			v := &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.CloseAfter}}}
			server := testserver.Run(t, openers[name], v)
			client := server.Client()
			for range 5 {
				resp, err := client.Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if string(body) != "ok\n" || err != nil || resp.Close {
					t.Errorf("answer = %q, %v, close %v", body, err, resp.Close)
				}
			}
			if got := v.Arrivals().Count(200); got != 5 {
				t.Errorf("answered = %d, want 5", got)
			}
		})
	}
}

func TestSlowFaultsTakeTheirTime(t *testing.T) {
	tests := []struct {
		name                  string
		fault                 testserver.Fault
		wantHeader, wantWhole time.Duration
	}{
		{"none", testserver.Fault{First: 2}, time.Second, time.Second},
		{"answer", testserver.Fault{Status: 503, Delay: time.Minute}, time.Minute, time.Minute},
		{"headers", testserver.Fault{Do: testserver.SlowHeaders, Delay: time.Minute}, 61 * time.Second, 61 * time.Second},
		{"body", testserver.Fault{Do: testserver.SlowBody, Delay: time.Minute, Size: 1600}, time.Second, 15*time.Minute + time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testserver.Vendor{Service: time.Second, Faults: []testserver.Fault{tt.fault}}
				server := testserver.Run(t, testserver.Pipe, v)
				start := time.Now()
				resp, err := server.Client().Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if got := time.Since(start); got != tt.wantHeader {
					t.Errorf("header after %v, want %v", got, tt.wantHeader)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Error(err)
				}
				if got := time.Since(start); got != tt.wantWhole {
					t.Errorf("whole after %v, want %v", got, tt.wantWhole)
				}
			})
		})
	}
}

func TestHangEndsAfterItsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Hang, Delay: time.Minute}}}
		server := testserver.Run(t, testserver.Pipe, v)
		start := time.Now()
		_, err := get(server.Client(), server.URL)
		if err == nil || time.Since(start) != time.Minute {
			t.Errorf("GET = %v after %v, want an error after 1m0s", err, time.Since(start))
		}
	})
}
