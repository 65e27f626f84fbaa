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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A process of these tests drains a lane: it writes the instant of each departure, a line
// each, until it is killed or has had its share.
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

// drain makes so many calls with so many workers.
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
				_, _ = os.Stdout.WriteString(strconv.FormatInt(time.Now().UnixNano(), 10) + "\n") // one write, whole or not at all
			}
		})
	}
	all.Wait()
}

// A process is one that drains.
type process struct {
	*exec.Cmd
	departures []int64
	began      chan struct{} // closed with the first departure
	done       chan struct{}
}

// begins starts a process that drains the lane of a directory.
func begins(t *testing.T, dir, limit string, workers, calls int) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0]), began: make(chan struct{}), done: make(chan struct{})}
	p.Env = append(os.Environ(), "GORACE=halt_on_error=1", "HOSTLOCAL_DIR="+dir, "HOSTLOCAL_LIMIT="+limit, fmt.Sprint("HOSTLOCAL_WORKERS=", workers), fmt.Sprint("HOSTLOCAL_CALLS=", calls))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done) // the last: nobody reports to a test that has ended
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if at, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				if p.departures = append(p.departures, at); len(p.departures) == 1 {
					close(p.began)
				}
			}
		}
		if err := p.Wait(); p.ProcessState.Exited() && err != nil { // not killed by the test
			t.Error("a process ended with", err)
		}
	}()
	return p
}

// Processes that drain one lane keep the rate together, and reach it, although one of
// them has most of the work. Those with little work are not starved.
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
	if took < ideal-20*time.Millisecond || took > 2*ideal {
		t.Errorf("%d calls at %d/s took %v, want about %v", len(departures), rate, took, ideal)
	}
}

// A process that is killed at any instant leaves the state whole: others keep the rate, and
// nobody waits for longer than a moment.
func TestKilledProcessesLeaveTheStateWhole(t *testing.T) {
	const rate = 1000
	dir := filepath.Join(t.TempDir(), "weir")
	limit := fmt.Sprintf("%d/s burst 10", rate)
	kills := 300
	switch {
	case os.Getenv("WEIR_LONG") != "":
		kills = 10_000
	case testing.Short():
		kills = 30
	}
	steady := begins(t, dir, limit, 4, 1<<30)
	var departures []int64
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range kills / 4 {
				p := begins(t, dir, limit, 4, 1<<30)
				select {
				case <-p.began:
				case <-time.After(5 * time.Second):
					t.Error("a process departs nothing for 5 s beside others that are killed")
				}
				time.Sleep(rand.N(20 * time.Millisecond))
				_ = p.Process.Kill()
				<-p.done
				mu.Lock()
				departures = append(departures, p.departures...)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	_ = steady.Process.Kill()
	<-steady.done
	departures = append(departures, steady.departures...)
	slices.Sort(departures)
	gap, most := time.Duration(0), 0
	for i, j := 1, 0; i < len(departures); i++ {
		gap = max(gap, time.Duration(departures[i]-departures[i-1]))
		for departures[i]-departures[j] > int64(time.Second) {
			j++
		}
		most = max(most, i-j+1)
	}
	t.Logf("%d kills, %d departures, at most %d in a second, longest gap %v", kills, len(departures), most, gap)
	if most > rate+10+rate/10 { // late processes write their departures late
		t.Errorf("%d departures in a second, want at most %d", most, rate+10)
	}
	if gap > 2*time.Second {
		t.Errorf("nothing departed for %v", gap)
	}
	if entries, _ := filepath.Glob(filepath.Join(dir, "*")); len(entries) == 0 || !strings.HasSuffix(entries[0], ".lane") {
		t.Errorf("the directory has %v", entries)
	}
}
