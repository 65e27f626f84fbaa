package hostlocal_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A crew is two stores of one directory, as of two processes. Their callers depart as fast as one
// limit allows, in real time.
type crew struct {
	path    string       // of the lane's file
	stepped atomic.Int64 // by how much their wall clock is wrong, in nanoseconds

	mu         sync.Mutex
	departures [2][]int64
	last       [2]error // of the last caller of each
}

// A turnout is how many callers of each store have departed.
type turnout [2]int

// atWork starts a crew. It ends with the test.
func atWork(t *testing.T, limit throttle.Limit) *crew {
	dir := private(t)
	c := &crew{}
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for i := range c.departures {
		store := &hostlocal.Store{Dir: dir}
		hostlocal.SetClock(store, func(throttle.Instant) throttle.Instant {
			return throttle.InstantOf(time.Now()).Add(time.Duration(c.stepped.Load()))
		})
		limiter, err := store.Limiter("k", limit)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		queue := shaping.NewQueue(limiter)
		for range 2 {
			all.Go(func() { c.work(ctx, i, queue) })
		}
	}
	t.Cleanup(func() { cancel(); all.Wait() })
	files, _ := filepath.Glob(filepath.Join(dir, "*.lane"))
	c.path = files[0]
	return c
}

// work makes one caller after the other wait in a queue.
func (c *crew) work(ctx context.Context, i int, queue *shaping.Queue) {
	for {
		err := queue.Wait(ctx)
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		if c.last[i] = err; err == nil {
			c.departures[i] = append(c.departures[i], time.Now().UnixNano())
		}
		c.mu.Unlock()
		if err != nil {
			time.Sleep(time.Millisecond)
		}
	}
}

// sofar returns how many callers have departed.
func (c *crew) sofar() turnout {
	c.mu.Lock()
	defer c.mu.Unlock()
	return turnout{len(c.departures[0]), len(c.departures[1])}
}

// goesOn reports whether ten callers of each store depart within d.
func (c *crew) goesOn(within time.Duration) bool {
	before := c.sofar()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if n := c.sofar(); n[0] >= before[0]+10 && n[1] >= before[1]+10 {
			return true
		}
	}
	return false
}

// A damaged or missing file, or a clock that is set, stops no caller: they depart in real time as
// before, at most as many as documented.
func TestFaultsStopNobody(t *testing.T) {
	const rate, burst = 200, 5
	noise := bytes.Repeat([]byte("noise of another program "), 50_000)
	type fault struct {
		begin func(c *crew) error
		extra int // departures in a second, beyond rate and burst
	}
	faults := map[string]fault{
		"clock set back by an hour":    {func(c *crew) error { c.stepped.Add(-int64(time.Hour)); return nil }, 0},
		"clock set forward by an hour": {func(c *crew) error { c.stepped.Add(int64(time.Hour)); return nil }, burst},
		"empty":                        {func(c *crew) error { return os.Truncate(c.path, 0) }, burst},
		"truncated in the first place": {func(c *crew) error { return os.Truncate(c.path, 50) }, burst},
		"truncated between the places": {func(c *crew) error { return os.Truncate(c.path, 4096+50) }, burst},
		"garbage":                      {func(c *crew) error { return os.WriteFile(c.path, noise, 0o600) }, burst},
		"state of another version":     {func(c *crew) error { return hostlocal.WriteValue(c.path, []byte("\x00\x01\xff")) }, burst},
		"another layout":               {func(c *crew) error { return patch(c.path, "weirhl\x00\x63") }, burst},
		"file removed":                 {func(c *crew) error { return os.Remove(c.path) }, burst + rate},
		"directory removed":            {func(c *crew) error { return os.RemoveAll(filepath.Dir(c.path)) }, burst + rate},
	}
	if runtime.GOOS == "windows" { // an open file cannot be removed
		delete(faults, "file removed")
		delete(faults, "directory removed")
	}
	crews := map[string]*crew{}
	for name := range faults {
		crews[name] = atWork(t, throttle.TokenBucket(rate, time.Second, burst))
	}
	for name, c := range crews {
		if !c.goesOn(10 * time.Second) {
			t.Fatalf("%s: ten callers do not depart before", name)
		}
		if err := faults[name].begin(c); err != nil {
			t.Fatal(name, err)
		}
	}
	for name, c := range crews {
		if !c.goesOn(5 * time.Second) {
			t.Errorf("%s: %v callers of the processes have departed after 5 s; the last errors are %v", name, c.sofar(), c.last)
		}
	}
	time.Sleep(time.Second)
	for name, c := range crews {
		c.mu.Lock()
		all := slices.Concat(c.departures[0], c.departures[1])
		c.mu.Unlock()
		slices.Sort(all)
		if n, most := mostIn(all, time.Second), rate+burst+faults[name].extra+rate/10; n > most {
			t.Errorf("%s: %d callers depart in a second, want at most %d", name, n, most)
		}
	}
}

// patch writes bytes where the header of each place begins.
func patch(path, head string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, first := f.WriteAt([]byte(head), 0)
	_, second := f.WriteAt([]byte(head), 4096)
	return errors.Join(first, second, f.Close())
}

// Two lanes of one store share nothing, and neither do the same keys of two namespaces.
func TestLanesOfAStoreAreApart(t *testing.T) {
	dir := private(t)
	a, b := &hostlocal.Store{Dir: dir}, &hostlocal.Store{Dir: dir, Namespace: "other"}
	defer a.Close()
	defer b.Close()
	var lanes []throttle.Limiter
	for _, lane := range []struct {
		store *hostlocal.Store
		key   string
	}{{a, "one"}, {a, "two"}, {b, "one"}} {
		l, err := lane.store.Limiter(lane.key, throttle.TokenBucket(1, time.Hour, 1))
		if err != nil {
			t.Fatal(err)
		}
		lanes = append(lanes, l)
	}
	now := throttle.InstantOf(time.Now())
	lanes[0].Reconcile(now, throttle.Fact{Until: now.Add(time.Minute)})
	if granted(t, lanes[0], now) || !granted(t, lanes[1], now) || !granted(t, lanes[2], now) {
		t.Error("a pause of one lane holds another, or not its own")
	}
	if granted(t, lanes[1], now) || granted(t, lanes[2], now) {
		t.Error("a lane is granted more than its burst")
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.lane")); len(files) != 3 {
		t.Errorf("three lanes have the files %v", files)
	}
}
