package testserver_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// get sends a GET, reads the answer whole and returns its status; on error zero and the error.
func get(client *http.Client, url string) (int, error) {
	resp, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func mustGet(t *testing.T, client *http.Client, url string, want int) {
	t.Helper()
	if got, err := get(client, url); got != want || err != nil {
		t.Errorf("GET %s = %d, %v, want %d", url, got, err, want)
	}
}

func TestServersSpeakTheirProtocol(t *testing.T) {
	tests := []struct {
		name string
		open func(http.Handler) (*testserver.Server, error)
		want string
	}{
		{"loopback", testserver.Listen, "HTTP/1.1"},
		{"TLS", testserver.ListenTLS, "HTTP/2.0"},
		{"pipe", testserver.Pipe, "HTTP/1.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			vendor := &testserver.Vendor{}
			server := testserver.Run(t, tt.open, vendor)
			resp, err := server.Client().Get(server.URL + "/a?b=c")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.Proto != tt.want {
				t.Errorf("Proto = %s, want %s", resp.Proto, tt.want)
			}
			got := vendor.Arrivals()
			if len(got) != 1 || got[0].Path != "/a" || got[0].Conn != 1 || got[0].Status != 200 {
				t.Errorf("Arrivals() = %+v", got)
			}
		})
	}
}

func TestTransportLeadsEveryHostToTheServer(t *testing.T) {
	hosts := make(chan string, 3)
	record := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hosts <- r.Host })
	plain := testserver.Run(t, testserver.Listen, record).Client()
	secure := testserver.Run(t, testserver.ListenTLS, record).Client()
	mustGet(t, plain, "http://a.example/", 200)
	mustGet(t, plain, "http://b.example:99/", 200)
	mustGet(t, secure, "https://eu.vendor.test/", 200)
	for _, want := range []string{"a.example", "b.example:99", "eu.vendor.test"} {
		if got := <-hosts; got != want {
			t.Errorf("host = %s, want %s", got, want)
		}
	}
}

func TestConnectionsAreCountedAndReused(t *testing.T) {
	vendor := &testserver.Vendor{}
	server := testserver.Run(t, testserver.Listen, vendor)
	one, other := server.Client(), server.Client()
	for range 3 {
		mustGet(t, one, server.URL, 200)
	}
	mustGet(t, other, server.URL, 200)
	if got := server.Conns(); got != 2 {
		t.Errorf("Conns() = %d, want 2", got)
	}
	if got := vendor.Arrivals().Conns(); got != 2 {
		t.Errorf("Arrivals().Conns() = %d, want 2", got)
	}
}

func TestCloseCutsOffRequests(t *testing.T) {
	arrived := make(chan bool, 8)
	vendor := &testserver.Vendor{Faults: []testserver.Fault{{
		Do:    testserver.Hang,
		Match: func(*http.Request) bool { arrived <- true; return true },
	}}}
	server, err := testserver.Listen(vendor)
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if status, err := get(server.Client(), server.URL); err == nil {
				t.Errorf("hung call = %d, want an error", status)
			}
		})
	}
	for range 8 {
		<-arrived
	}
	server.Close()
	calls.Wait()
	server.Close()
}

func TestPipeServesABubbleForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Limits:  []testserver.Limit{testserver.TokenBucket(2, time.Second, 1)},
			Styles:  []testserver.Style{testserver.Coarse},
			Service: 5 * time.Millisecond,
		}
		server := testserver.Run(t, testserver.Pipe, vendor)
		client := server.Client()
		var workers sync.WaitGroup
		for worker := range 4 {
			workers.Go(func() {
				// Each instant of the grid belongs to one worker, which asks when one permit has
				// just accrued.
				time.Sleep(time.Duration(worker) * 500 * time.Millisecond)
				for range 1800 {
					mustGet(t, client, server.URL, 200)
					time.Sleep(2*time.Second - vendor.Service)
				}
			})
		}
		workers.Wait()

		got := vendor.Arrivals()
		if len(got) != 7200 || got.Count(200) != 7200 {
			t.Errorf("arrivals = %d with %v, want 7200 of status 200", len(got), got.Statuses())
		}
		if gap := got.MinGap(); gap != 500*time.Millisecond {
			t.Errorf("MinGap() = %v, want 500ms exactly", gap)
		}
		if span := got.Span(); span != time.Hour-500*time.Millisecond {
			t.Errorf("Span() = %v, want an hour less one gap", span)
		}
		if burst := got.BurstAt(2, time.Second); burst != 1 {
			t.Errorf("BurstAt(2, 1s) = %d, want 1", burst)
		}
	})
}

func TestBubbleEndsCleanWithCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Service: time.Hour}
		server := testserver.Run(t, testserver.Pipe, vendor)
		client := server.Client()
		client.Timeout = time.Second
		for range 3 {
			if _, err := get(client, server.URL); err == nil {
				t.Error("GET of an hour's service within a second = nil error")
			}
		}
		client = server.Client()
		go func() {
			resp, err := client.Post(server.URL, "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
			if err == nil { // it was answered as the server ended, which is rare
				resp.Body.Close()
			}
		}()
		time.Sleep(time.Minute)
	})
}

func TestFleetOfClientsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.FixedWindow(10, time.Second)},
			Key:    testserver.KeyHeader("X-Account"),
		}
		server := testserver.Run(t, testserver.Pipe, vendor)
		var clients sync.WaitGroup
		for account := range 3 {
			client := server.Client()
			for range 12 {
				clients.Go(func() {
					req, _ := http.NewRequest(http.MethodGet, server.URL, nil)
					req.Header.Set("X-Account", fmt.Sprint(account))
					resp, err := client.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					resp.Body.Close()
				})
			}
		}
		clients.Wait()
		for account := range 3 {
			of := vendor.Arrivals().Filter(func(a testserver.Arrival) bool { return a.Key == fmt.Sprint(account) })
			if of.Count(200) != 10 || of.Count(429) != 2 {
				t.Errorf("account %d: %v, want 10 of 200 and 2 of 429", account, of.Statuses())
			}
		}
	})
}
