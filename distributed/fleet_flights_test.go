package distributed_test

import (
	"encoding/json"
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

// callerEnv makes the test binary a process that calls a vendor without a pause.
const callerEnv = "WEIR_FLEET_CALLER"

// A job is what such a process does. It travels as JSON.
type job struct {
	Redis, Vendor string
	Most, Workers int
	Lease         time.Duration
	Replicas      int // of customers whose requests have two keys; zero: calls have none, and share their flights
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

// employ starts a process that does a job. It ends with the test.
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
	go func() { // to the kernel the parent is the thread
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

// A tower is a vendor who counts the calls in flight of each process.
type tower struct {
	service time.Duration

	mu      sync.Mutex
	flying  int
	most    int
	flights int
	busy    time.Duration // flights times their duration
	changed time.Time
}

func (w *tower) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	w.count(1)
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

// watch returns how many were in flight at most during a time, and on average.
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

// Processes with lines everywhere share calls in flight. What one that is killed or
// stopped had comes back with its lease, and what Redis forgot is told again.
func TestFlightsOfProcesses(t *testing.T) {
	t.Parallel()
	const most, lease = 8, 3 * time.Second
	server, vendor := redistest.Start(t), &tower{service: 50 * time.Millisecond}
	front := httptest.NewServer(vendor)
	t.Cleanup(front.Close)
	j := job{Redis: server.Addr(), Vendor: front.URL, Most: most, Workers: 2 * most, Lease: lease}
	var all []*exec.Cmd
	for range 3 {
		all = append(all, employ(t, j))
	}
	await(t, "the first calls", func() bool { _, mean, _ := vendor.watch(time.Second / 4); return mean > most/2 })
	watch := func(what string, d time.Duration, atMost int) {
		t.Helper()
		before := server.Commands()["evalsha"]
		top, mean, flights := vendor.watch(d)
		calls := server.Commands()["evalsha"] - before
		t.Logf("%s: %d of %d in flight at most, %.2f on average, %.3f calls to Redis each", what, top, most, mean, float64(calls)/float64(max(flights, 1)))
		if top > atMost {
			t.Errorf("%s: %d in flight, want %d at most", what, top, atMost)
		}
	}
	// full waits until the slots are used, which takes a lease if somebody has gone.
	full := func(what string) {
		t.Helper()
		began := time.Now()
		await(t, what+" to leave its slots", func() bool { _, mean, _ := vendor.watch(time.Second / 4); return mean > 0.75*most })
		t.Logf("%s: the slots were in use again after %v", what, time.Since(began))
	}
	watch("three processes", time.Second, most)

	_ = all[0].Process.Kill()
	watch("one killed", time.Second/2, most)
	full("the killed one")

	halt(t, all[1].Process)
	full("the stopped one")
	resume(t, all[1].Process)
	watch("it goes on", time.Second/2, most+most) // those that its stop caught on their way depart late
	watch("it has gone on", time.Second, most)

	if _, err := server.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	watch("Redis has forgotten all", lease/2, 2*most)
	watch("it was told again", time.Second, most)
	full("everybody")
}
