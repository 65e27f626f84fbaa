package hostlocal_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	lanestore "github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A process of these tests drains a lane: it writes the instant of each departure on a line, until
// it is killed or has had its share.
func TestMain(m *testing.M) {
	if dir := os.Getenv("HOSTLOCAL_DIR"); dir != "" {
		drain(dir, os.Getenv("HOSTLOCAL_LIMIT"), number("HOSTLOCAL_WORKERS"), number("HOSTLOCAL_CALLS"))
		return
	}
	verify(m)
}

func number(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name))
	return n
}

// drain makes calls with a number of workers.
func drain(dir, limit string, workers, calls int) {
	l, err := throttle.ParseLimit(limit)
	if err != nil {
		panic(err)
	}
	store := &hostlocal.Store{Dir: dir}
	defer store.Close()
	limiter, err := store.Limiter("drained", l)
	if err != nil {
		panic(err)
	}
	limiter.(lanestore.Limiter).Watch(lanestore.Watch{Strayed: func(e lanestore.Event) { write(string(e)) }})
	if os.Getenv("HOSTLOCAL_RETURNS") != "" {
		go takeAndReturn(limiter)
	}
	queue := shaping.NewQueue(limiter)
	var mu sync.Mutex
	left := calls
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				mu.Lock()
				left--
				done := left < 0
				mu.Unlock()
				if done {
					return
				}
				if err := queue.Wait(context.Background()); err != nil {
					panic(err)
				}
				write(strconv.FormatInt(time.Now().UnixNano(), 10))
			}
		})
	}
	all.Wait()
}

// write writes a line with one write, so that it is whole or absent.
func write(line string) { _, _ = os.Stdout.WriteString(line + "\n") }

// takeAndReturn takes permits and returns them, with a write each, until the process ends.
func takeAndReturn(l throttle.Limiter) {
	for r := (throttle.Request{N: 1}); ; time.Sleep(100 * time.Microsecond) {
		now := throttle.InstantOf(time.Now())
		if g, err := l.Take(now, r); err == nil && g.At <= now {
			l.Refund(now, g, r)
		}
	}
}

// A process is one that drains.
type process struct {
	*exec.Cmd
	departures []int64       // complete when done
	last       atomic.Int64  // the latest departure
	began      chan struct{} // closed with the first departure
	done       chan struct{}
}

// kill kills a process and waits for its end.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.done
}

// begins starts a process that drains the lane of a directory.
func begins(t *testing.T, dir, limit string, workers, calls int, env ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0]), began: make(chan struct{}), done: make(chan struct{})}
	p.Env = append(os.Environ(), "GORACE=halt_on_error=1", "HOSTLOCAL_DIR="+dir, "HOSTLOCAL_LIMIT="+limit, fmt.Sprint("HOSTLOCAL_WORKERS=", workers), fmt.Sprint("HOSTLOCAL_CALLS=", calls))
	p.Env = append(p.Env, env...)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done) // last, because a test that has ended takes no reports
		for lines := bufio.NewScanner(out); lines.Scan(); {
			at, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				t.Error("a process reports", lines.Text())
				continue
			}
			p.last.Store(at)
			if p.departures = append(p.departures, at); len(p.departures) == 1 {
				close(p.began)
			}
		}
		if err := p.Wait(); p.ProcessState.Exited() && err != nil { // not killed by the test
			t.Error("a process ended with", err)
		}
	}()
	return p
}

// Processes that drain one lane keep the joint rate, and reach it, although one of them has most of
// the work. Processes with little work are not starved.
func TestProcessesDrainTogether(t *testing.T) {
	const rate, calls = 200, 600
	dir := filepath.Join(t.TempDir(), "weir")
	limit := fmt.Sprintf("%d/s burst 1", rate)
	var all []*process
	for i := range 8 {
		share := calls * 20 / 100 / 7
		if i == 0 {
			share = calls * 80 / 100
		}
		all = append(all, begins(t, dir, limit, 16, share))
	}
	var departures []int64
	for i, p := range all {
		<-p.done
		departures = append(departures, p.departures...)
		if i > 0 {
			t.Logf("process %d: %d calls", i, len(p.departures))
		}
	}
	slices.Sort(departures)
	took := time.Duration(departures[len(departures)-1] - departures[0])
	ideal := time.Duration(len(departures)-1) * time.Second / rate
	t.Logf("%d calls took %v: %.3f of the ideal", len(departures), took, float64(took)/float64(ideal))
	if took < ideal-20*time.Millisecond || took > 5*ideal { // a busy machine voids permits
		t.Errorf("%d calls at %d/s took %v, want about %v", len(departures), rate, took, ideal)
	}
}

// A process killed at any instant leaves the state whole: no permits are granted twice, and others
// continue at once. Half of the kills are during a process's start. Each process also takes and
// returns permits continuously, so that many kills interrupt a write.
func TestKilledProcessesLeaveTheStateWhole(t *testing.T) {
	const rate, burst, slack = 1000, 10, 300 * time.Millisecond
	dir := filepath.Join(t.TempDir(), "weir")
	limit := fmt.Sprintf("%d/s burst %d", rate, burst)
	kills := 300
	switch {
	case os.Getenv("WEIR_LONG") != "":
		kills = 10_000
	case testing.Short():
		kills = 30
	}
	machine := stalls(t)
	steady := begins(t, dir, limit, 4, 1<<30)
	var departures []int64
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range kills / 4 {
				p := begins(t, dir, limit, 4, 1<<30, "HOSTLOCAL_RETURNS=1")
				if i%2 == 0 {
					select {
					case <-p.began:
					case <-time.After(5 * time.Second):
						t.Error("a process departs nothing for 5 s beside others that are killed")
					}
				}
				time.Sleep(rand.N(40 * time.Millisecond))
				p.kill()
				mu.Lock()
				departures = append(departures, p.departures...)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	store := &hostlocal.Store{Dir: dir}
	defer store.Close()
	last, err := store.Limiter("drained", throttle.TokenBucket(rate, time.Second, burst))
	if err != nil || last.State(throttle.InstantOf(time.Now())).Store.Replicas < 2 {
		t.Errorf("the state is not whole after %d kills: %v", kills, err)
	}
	steady.kill()
	departures = append(departures, steady.departures...)
	slices.Sort(departures)
	gap, most := longest(departures), mostIn(departures, time.Second)
	stalled := machine()
	t.Logf("%d kills, %d departures, at most %d in a second; longest gap %v, of the steady process %v; the machine stalled for %v", kills, len(departures), most, gap, longest(steady.departures), stalled)
	if most > rate+burst+rate/10 { // late processes write their departures late
		t.Errorf("%d departures in a second, want at most %d", most, rate+burst)
	}
	const refill = burst * time.Second / rate
	if gap > refill+slack+stalled {
		t.Errorf("nothing departed for %v, want at most a refill, %v, and %v on a busy machine", gap, refill, slack)
	}
}

// Many processes at once keep the joint rate, and each has its share in the end.
func TestCrowdsOfProcessesDrainTogether(t *testing.T) {
	const rate, each = 200, 15
	processes := 20
	if os.Getenv("WEIR_LONG") != "" {
		processes = 100
	}
	dir := filepath.Join(t.TempDir(), "weir")
	var all []*process
	for range processes {
		all = append(all, begins(t, dir, fmt.Sprintf("%d/s burst 5", rate), 2, each))
	}
	var departures []int64
	for _, p := range all {
		<-p.done
		departures = append(departures, p.departures...)
	}
	slices.Sort(departures)
	if len(departures) != processes*each {
		t.Fatalf("%d calls of %d depart", len(departures), processes*each)
	}
	took := time.Duration(departures[len(departures)-1] - departures[0])
	most := mostIn(departures, time.Second)
	t.Logf("%d processes make %d calls in %v, at most %d in a second; longest gap %v", processes, len(departures), took, most, longest(departures))
	if most > rate+5+2*processes { // each caller may write its departure late
		t.Errorf("%d calls depart in a second, want at most %d", most, rate+5)
	}
	if ideal := time.Duration(len(departures)) * time.Second / rate; took > 5*ideal+2*time.Second {
		t.Errorf("%d calls took %v, want about %v", len(departures), took, ideal)
	}
}

// Processes with different limits for one lane keep the stricter one.
func TestProcessesKeepTheStricterLimit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "weir")
	strict := begins(t, dir, "100/s burst 1", 4, 60)
	<-strict.began
	loose := begins(t, dir, "1000/s burst 50", 4, 60)
	<-strict.done
	<-loose.done
	departures := slices.Concat(strict.departures, loose.departures)
	slices.Sort(departures)
	most := mostIn(departures, time.Second)
	t.Logf("%d calls, at most %d in a second", len(departures), most)
	if len(departures) != 120 || most > 100+1+10 {
		t.Errorf("of 120 calls %d depart, at most %d in a second, want at most 101", len(departures), most)
	}
}

// longest returns the longest time between instants in order, in nanoseconds.
func longest(instants []int64) (gap time.Duration) {
	for i := 1; i < len(instants); i++ {
		gap = max(gap, time.Duration(instants[i]-instants[i-1]))
	}
	return gap
}

// mostIn returns the most instants of an ordered list in any window.
func mostIn(instants []int64, window time.Duration) (most int) {
	j := 0
	for i := range instants {
		for instants[i]-instants[j] > int64(window) {
			j++
		}
		most = max(most, i-j+1)
	}
	return most
}

// stalls watches the machine. The function that it returns ends the watch, and returns the longest
// time for which this process did not run.
func stalls(t *testing.T) (end func() time.Duration) {
	done, ended := make(chan struct{}), make(chan time.Duration)
	go func() {
		longest := time.Duration(0)
		for before := time.Now(); ; before = time.Now() {
			select {
			case <-done:
				ended <- longest
				return
			case <-time.After(time.Millisecond):
				longest = max(longest, time.Since(before)-time.Millisecond)
			}
		}
	}()
	return func() time.Duration { close(done); return <-ended }
}
