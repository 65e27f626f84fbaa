package sdktest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/riverqueue/river"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// The blocks of the pages are from files that the other tests run.
func TestPagesShowRecipes(t *testing.T) {
	var source []byte
	for _, file := range []string{"recipes.go", "wrapper.go", "wrapper_test.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	blocks := 0
	pages, _ := filepath.Glob("../../docs/*.md")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?ms)^```go sdktest\n(.*?)^```").FindAllSubmatch(text, -1) {
			if blocks++; !bytes.Contains(source, m[1]) {
				t.Errorf("%s has a block that is in no file here:\n%s", page, m[1])
			}
		}
	}
	if blocks != 8 {
		t.Errorf("%d blocks were found, want 8", blocks)
	}
}

// Jobs that find no room come back when there is some. None fails, and the vendor's limit is kept.
func TestAsynqSnoozes(t *testing.T) {
	redis := redistest.Start(t)
	const jobs = 12
	var mu sync.Mutex
	var arrived []time.Time
	done := make(chan struct{})
	vendor := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if arrived = append(arrived, time.Now()); len(arrived) == jobs {
			close(done)
		}
	}))
	defer vendor.Close()
	transport := &weir.Transport{Limits: []throttle.Limit{throttle.LeakyBucket(2, time.Second)}, Learn: weir.LearnOff}
	defer transport.Close()
	opt := asynq.RedisClientOpt{Addr: redis.Addr()}
	config := asynqConfig()
	config.Concurrency, config.DelayedTaskCheckInterval, config.LogLevel = 20, 100*time.Millisecond, asynq.FatalLevel
	server := asynq.NewServer(opt, config)
	if err := server.Start(asynqHandler(transport)); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	client := asynq.NewClient(opt)
	defer client.Close()
	began := time.Now()
	for range jobs {
		if _, err := client.Enqueue(asynq.NewTask("notify", []byte(vendor.URL)), asynq.MaxRetry(1)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%d of %d jobs were done", len(arrived), jobs)
	}
	if took := time.Since(began); took < 5*time.Second {
		t.Errorf("%d calls at 2/s took %v, want 5.5s or more", jobs, took)
	}
}

func TestRiverSnoozes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(1, time.Minute, 1)}, Base: answering(nil)}
		defer transport.Close()
		worker := &Notifier{transport: transport}
		job := &river.Job[Notify]{Args: Notify{URL: "http://vendor.test/"}}
		if err := worker.Work(t.Context(), job); err != nil {
			t.Errorf("first job = %v", err)
		}
		err := worker.Work(t.Context(), job)
		var snooze *river.JobSnoozeError
		if !errors.As(err, &snooze) || snooze.Duration != time.Minute {
			t.Errorf("second job = %v, want a snooze of a minute", err)
		}
		time.Sleep(time.Minute)
		if err := worker.Work(t.Context(), job); err != nil {
			t.Errorf("job that came back = %v", err)
		}
		ctx := weir.WithCost(t.Context(), 2)
		var cancel *river.JobCancelError
		if err := worker.Work(ctx, job); !errors.As(err, &cancel) {
			t.Errorf("job that can never go = %v, want it canceled", err)
		}
	})
}

// Two vendors are used up to their limits, and the calls end as soon as possible.
func TestRouterTakesTheVendorWithRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := map[string]int{}
		transport := &weir.Transport{
			Base: answering(served),
			LimitsFor: func(host string) []throttle.Limit {
				return []throttle.Limit{throttle.LeakyBucket(map[string]int{"slow.test": 1, "fast.test": 3}[host], time.Second)}
			},
		}
		defer transport.Close()
		began := time.Now()
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				slow, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://slow.test/", nil)
				fast, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://fast.test/", nil)
				resp, err := sendSoonest(transport, slow, fast)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			})
			synctest.Wait()
		}
		wg.Wait()
		if took := time.Since(began); took > 11*time.Second || served["slow.test"] < 9 || served["fast.test"] < 29 {
			t.Errorf("served %v in %v, want 10 and 30 within 11 s", served, took)
		}
	})
}

// answering is a base that answers at once, and counts by host.
type answering map[string]int

var answeringMu sync.Mutex

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	if a != nil {
		answeringMu.Lock()
		defer answeringMu.Unlock()
		a[req.URL.Host]++
	}
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: req}, nil
}
