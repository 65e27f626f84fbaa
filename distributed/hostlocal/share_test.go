package hostlocal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

const midnight throttle.Instant = 1_767_225_600_000_000_000

// pair returns limiters of two processes, and the path of their file.
func pair(t *testing.T, limits ...throttle.Limit) (a, b throttle.Limiter, path string) {
	dir := private(t)
	a, b = hostlocal.NewAt(dir, "k", limits...), hostlocal.NewAt(dir, "k", limits...)
	t.Cleanup(func() { _, _ = a.(throttle.Remote).Close(), b.(throttle.Remote).Close() })
	files, _ := filepath.Glob(filepath.Join(dir, "*.lane"))
	if len(files) != 1 {
		t.Fatalf("the directory has %v, want one file", files)
	}
	return a, b, files[0]
}

// granted reports whether a limiter grants one permit.
func granted(t *testing.T, l throttle.Limiter, now throttle.Instant) bool {
	t.Helper()
	g, err := l.Take(now, throttle.Request{N: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g.At <= now
}

// A pause at one process also applies at the other, and so do the permits that it spent.
func TestPausesHoldOtherProcesses(t *testing.T) {
	a, b, _ := pair(t, throttle.TokenBucket(1, time.Second, 1))
	if !granted(t, a, midnight) || granted(t, b, midnight) {
		t.Error("two processes do not share one permit")
	}
	a.Reconcile(midnight.Add(time.Second), throttle.Fact{Until: midnight.Add(time.Minute)})
	if granted(t, b, midnight.Add(time.Minute-1)) || !granted(t, b, midnight.Add(time.Minute)) {
		t.Error("a pause does not hold the other process until its end")
	}
}

// A file that is damaged costs one burst at most: a process that knows the state writes it
// again.
func TestDamagedFilesAreWrittenAgain(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 100) },
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"garbage":   func(path string) error { return os.WriteFile(path, []byte("garbage of another program"), 0o600) },
		"removed":   os.Remove,
	} {
		if name == "removed" && runtime.GOOS == "windows" {
			continue // an open file cannot be
		}
		a, b, path := pair(t, throttle.TokenBucket(1, time.Hour, 2))
		for range 2 {
			if !granted(t, a, midnight) {
				t.Fatalf("%s: no permit at first", name)
			}
		}
		if err := damage(path); err != nil {
			t.Fatal(err)
		}
		later := midnight.Add(2 * time.Second)
		if granted(t, a, later) || granted(t, b, later) || granted(t, a, later) {
			t.Errorf("%s: a permit was granted twice", name)
		}
	}
}

// A reader without the lock may see half of a write, and reports nothing: the state is lost
// only if that is so under the lock.
func TestOnlyLossesUnderTheLockAreReported(t *testing.T) {
	a, b, path := pair(t, throttle.TokenBucket(1, time.Hour, 2))
	events := make(chan store.Event, 10)
	b.(store.Limiter).Watch(store.Watch{Strayed: func(e store.Event) { events <- e }})
	if !granted(t, a, midnight) || !granted(t, b, midnight) {
		t.Fatal("no permit at first")
	}
	whole, err := os.ReadFile(path)
	torn := append(make([]byte, 40), whole[40:]...) // neither place is whole
	clear(torn[4096+8 : 4096+40])
	if err := errors.Join(err, os.WriteFile(path, torn, 0)); err != nil {
		t.Fatal(err)
	}
	if st := b.State(midnight); st.Store.Replicas != 2 {
		t.Errorf("the state is %+v while it is written", st.Store)
	}
	if err := os.WriteFile(path, whole, 0); err != nil {
		t.Fatal(err)
	}
	if granted(t, b, midnight) {
		t.Error("a third permit is granted")
	}
	if err := os.WriteFile(path, torn, 0); err != nil {
		t.Fatal(err)
	}
	_ = granted(t, b, midnight)
	if e := <-events; e != store.EventStateLost || len(events) > 0 {
		t.Errorf("the event is %s, and %d more, want one of a lost state", e, len(events))
	}
}

// A process that sleeps for an hour continues with the state that others have written since, even
// if its file was removed meanwhile.
func TestSleepersGoOnWithTheStateOfOthers(t *testing.T) {
	for _, removed := range []bool{false, true} {
		if removed && runtime.GOOS == "windows" {
			continue // an open file cannot be
		}
		a, _, path := pair(t, throttle.TokenBucket(1, time.Second, 5))
		if !granted(t, a, midnight) {
			t.Fatal("no permit at first")
		}
		if removed {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		b := hostlocal.NewAt(filepath.Dir(path), "k", throttle.TokenBucket(1, time.Second, 5))
		t.Cleanup(func() { _ = b.(throttle.Remote).Close() })
		now := midnight.Add(time.Hour)
		b.Reconcile(now, throttle.Fact{Until: now.Add(-1)}) // its savings are void
		if !granted(t, b, now) || granted(t, b, now) {
			t.Error("the process that starts later is not granted one permit")
		}
		if granted(t, a, now) || !granted(t, a, now.Add(time.Second)) || granted(t, b, now.Add(time.Second)) {
			t.Error("the process that slept does not share the state of the other")
		}
	}
}

// If processes enforce different limits, the strictest are in force.
func TestStrictestLimitsHold(t *testing.T) {
	dir := private(t)
	a := hostlocal.NewAt(dir, "k", throttle.TokenBucket(100, time.Second, 10))
	b := hostlocal.NewAt(dir, "k", throttle.TokenBucket(1, time.Second, 1))
	t.Cleanup(func() { _, _ = a.(throttle.Remote).Close(), b.(throttle.Remote).Close() })
	if !granted(t, b, midnight) || granted(t, a, midnight.Add(500*time.Millisecond)) {
		t.Error("a process with looser limits does not keep the stricter ones")
	}
	if st := a.State(midnight.Add(500 * time.Millisecond)); !st.Store.Differs || st.Store.Replicas != 2 {
		t.Errorf("the state is %+v", st.Store)
	}
	if !granted(t, a, midnight.Add(13*time.Second)) || !granted(t, a, midnight.Add(13*time.Second+10*time.Millisecond)) {
		t.Error("limits that no process has enforced for 13 s are still in force")
	}
}

// A file that another user could have planted is refused.
func TestPlantedFilesAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows guards files by the access lists of the profile, and has no mode or owner to check")
	}
	dir := private(t)
	l := hostlocal.NewAt(dir, "k")
	_ = l.(throttle.Remote).Close()
	files, _ := filepath.Glob(filepath.Join(dir, "*.lane"))
	if err := os.Rename(files[0], files[0]+".real"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(files[0]+".real", files[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := (&hostlocal.Store{Dir: dir}).Limiter("k"); err == nil {
		t.Error("a symbolic link in the place of a file is followed")
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := (&hostlocal.Store{Dir: dir}).Limiter("other"); err == nil {
		t.Error("a directory that others may write to is used")
	}
}

func TestStatesThatDoNotFitAreAnError(t *testing.T) {
	log := throttle.SlidingLog(4096, 24*time.Hour)
	var many []throttle.Limit
	for i := range 300 {
		many = append(many, throttle.TokenBucket(1, time.Hour, 1).Named(fmt.Sprintf("%d %0100d", i, i)))
	}
	for name, test := range map[string]struct {
		limits []throttle.Limit
		fit    bool
	}{
		"two logs":   {[]throttle.Limit{log, log}, true},
		"three logs": {[]throttle.Limit{log, log, log}, false},
		"many":       {many, false},
	} {
		store := &hostlocal.Store{Dir: private(t)}
		defer func() { _ = store.Close() }()
		if _, err := store.Limiter("k", test.limits...); (err == nil) != test.fit {
			t.Errorf("%s: Limiter = %v, want an error: %v", name, err, !test.fit)
		}
	}
}

// The directory stays the one that it was, although the process changes its own.
func TestRelativeDirectoriesStay(t *testing.T) {
	t.Chdir(t.TempDir())
	store := &hostlocal.Store{Dir: "weir"}
	defer func() { _ = store.Close() }()
	for i := range 2 {
		l, err := store.Limiter("k", throttle.TokenBucket(1, time.Hour, 1))
		if err != nil {
			t.Fatal(err)
		}
		if got := granted(t, l, throttle.InstantOf(time.Now())); got != (i == 0) {
			t.Errorf("limiter %d grants: %v", i, got)
		}
		t.Chdir(t.TempDir())
	}
}

// What was learned is removed with its lane, however long nothing new was learned.
func TestOnlyUnusedLanesAreRemoved(t *testing.T) {
	dir := private(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, days := range map[string]int{"used.lane": 99, "used.learned": 101, "unused.lane": 101, "unused.learned": 102, "notes": 200} {
		path, then := filepath.Join(dir, name), time.Now().AddDate(0, 0, -days)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	store := &hostlocal.Store{Dir: dir}
	defer func() { _ = store.Close() }()
	if _, err := store.Limiter("k"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"used.lane": true, "used.learned": true, "unused.lane": false, "unused.learned": false, "notes": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
}
