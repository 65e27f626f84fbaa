package distributed_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
)

// callerEnv makes the test binary a process that calls a vendor continuously.
const callerEnv = "WEIR_FLEET_CALLER"

// A job is such a process's task, encoded as JSON.
type job struct {
	Redis, Vendor string
	Most, Workers int
	Lease         time.Duration
	Replicas      int // of customers whose requests have two keys; zero: no keys, and shared calls in flight
}

// callOn does a job until the process is killed.
func callOn(work string) int {
	var j job
	if err := json.Unmarshal([]byte(work), &j); err != nil {
		return 2
	}
	if j.Replicas > 0 {
		return j.serveCustomers()
	}
	store := distributed.New(redis.NewClient(&redis.Options{Addr: j.Redis}), "flights")
	store.Lease, store.Logger = j.Lease, slog.New(slog.DiscardHandler)
	// A reply delayed by a busy machine must not count as an outage, in which each replica gets a
	// share by policy.
	store.FirstDeadline, store.Deadline, store.MaxDeadline = patience, patience, patience
	base := &http.Transport{MaxIdleConnsPerHost: j.Workers}
	client := &http.Client{Transport: &weir.Transport{Base: base, Store: store, InFlight: weir.InFlight{Shared: j.Most}, Learn: weir.LearnOff, Logger: store.Logger}}
	var all sync.WaitGroup
	for range j.Workers {
		all.Go(func() {
			for {
				if resp, err := client.Get(j.Vendor); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}
		})
	}
	all.Wait()
	return 0
}

// employ starts a process for a job. It ends with the test.
func employ(t *testing.T, j job) *exec.Cmd {
	t.Helper()
	work, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), callerEnv+"="+string(work))
	dieWithParent(cmd)
	started, ended := make(chan error), make(chan struct{})
	go func() { // for the kernel the parent is the thread
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		started <- cmd.Start()
		_ = cmd.Wait()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return cmd
}

// A tower is a vendor that counts calls in flight. A call's path names its process.
type tower struct {
	service time.Duration

	mu      sync.Mutex
	of      map[string]int // calls of each process
	flying  int
	most    int
	flights int
	busy    time.Duration // flights times their duration
	changed time.Time
}

func (w *tower) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	w.count(1)
	w.mu.Lock()
	w.of[req.URL.Path]++
	w.mu.Unlock()
	select {
	case <-time.After(w.service):
	case <-req.Context().Done(): // its process was killed
	}
	w.count(-1)
}

func (w *tower) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.busy += time.Duration(w.flying) * now.Sub(w.changed)
	w.flying, w.changed = w.flying+n, now
	w.most, w.flights = max(w.most, w.flying), w.flights+max(n, 0)
}

// calls returns how many calls arrived from a process.
func (w *tower) calls(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[path]
}

// watch returns the most calls in flight during d, the average, and the number of calls.
func (w *tower) watch(d time.Duration) (most int, mean float64, flights int) {
	w.count(0)
	w.mu.Lock()
	w.most, w.busy, w.flights = w.flying, 0, 0
	w.mu.Unlock()
	began := time.Now()
	time.Sleep(d)
	w.count(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most, w.busy.Seconds() / time.Since(began).Seconds(), w.flights
}

// Saturated processes share the calls in flight. A killed or stopped process's share returns when
// its lease expires, and processes resend what Redis forgot.
func TestFlightsOfProcesses(t *testing.T) {
	t.Parallel()
	const most, lease, moment = 8, 3 * time.Second, time.Second / 4
	server, vendor := redistest.Start(t), &tower{service: 50 * time.Millisecond, of: make(map[string]int)}
	front := httptest.NewServer(vendor)
	t.Cleanup(front.Close)
	var all []*exec.Cmd
	for i := range 3 {
		all = append(all, employ(t, job{Redis: server.Addr(), Vendor: fmt.Sprint(front.URL, "/", i), Most: most, Workers: 2 * most, Lease: lease}))
	}
	watch := func(what string, d time.Duration, atMost int) (top int) {
		t.Helper()
		before := server.Commands()["evalsha"]
		top, mean, flights := vendor.watch(d)
		calls := server.Commands()["evalsha"] - before
		t.Logf("%s: %d of %d in flight at most, %.2f on average, %.3f calls to Redis each", what, top, most, mean, float64(calls)/float64(max(flights, 1)))
		if top > atMost {
			t.Errorf("%s: %d in flight, want %d at most", what, top, atMost)
		}
		return top
	}
	// full waits until all slots are used at once, which takes a lease's time after a process ends.
	full := func(what string) {
		t.Helper()
		await(t, "all slots: "+what, func() bool { return watch(what, moment, most) == most })
	}
	full("the first calls")
	watch("three processes", time.Second, most)

	_ = all[0].Process.Kill()
	watch("one killed", 2*moment, most)
	full("the killed one leaves its slots")

	halt(t, all[1].Process)
	full("the stopped one leaves its slots")
	before := vendor.calls("/1")
	resume(t, all[1].Process)
	await(t, "calls of the one that goes on", func() bool {
		watch("it goes on", moment, 2*most) // calls delayed by its stop depart late
		return vendor.calls("/1") > before+4*most
	})
	watch("it has gone on", time.Second, most)

	if _, err := server.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	await(t, "both to tell their slots again", func() bool {
		watch("Redis has forgotten all", moment, 2*most)
		return leases(t, server) == 2
	})
	await(t, "the slots above the bound to come back", func() bool { return watch("it was told again", moment, 2*most) <= most })
	watch("all is told", time.Second, most)
	full("everybody")
}

// leases returns how many processes have a lease in the only lane of a server.
func leases(t *testing.T, server *redistest.Server) (n int64) {
	t.Helper()
	keys, err := server.Do("KEYS", "*:flights")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys.([]any) {
		if held, err := server.Do("HLEN", key.(string)); err == nil {
			n += held.(int64)
		}
	}
	return n
}
