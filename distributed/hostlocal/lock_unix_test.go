//go:build unix

package hostlocal_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/internal/needs"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// grantedWithin reports whether a limiter grants a permit by the wall clock within d.
func grantedWithin(l throttle.Limiter, d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		now := throttle.InstantOf(time.Now())
		if g, err := l.Take(now, throttle.Request{N: 1}); err == nil && g.At <= now {
			return true
		}
	}
	return false
}

// refusedWithin returns the error of the first refusal, or nil if there is none within d.
func refusedWithin(l throttle.Limiter, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := l.Take(throttle.InstantOf(time.Now()), throttle.Request{N: 1}); err != nil {
			return err
		}
	}
	return nil
}

// While a process is stopped with the lock, callers of others are refused after a second with an
// error that says so. They depart again when the lock is free.
func TestStoppedHoldersOfTheLockAreReported(t *testing.T) {
	dir := private(t)
	store := &hostlocal.Store{Dir: dir}
	defer store.Close()
	l, err := store.Limiter("k", throttle.TokenBucket(1000, time.Second, 1))
	if err != nil || !grantedWithin(l, 5*time.Second) {
		t.Fatal("no permit at first", err)
	}
	unlock := held(t, dir)
	began := time.Now()
	err = refusedWithin(l, 10*time.Second)
	if !errors.Is(err, hostlocal.ErrUnavailable) {
		t.Fatalf("callers of a lane whose file is locked get %v, want ErrUnavailable", err)
	}
	t.Log(err)
	if d := time.Since(began); d < 900*time.Millisecond {
		t.Errorf("callers were refused after %v, want a second", d)
	}
	if st := l.State(throttle.InstantOf(time.Now())); !st.Store.Lost || st.Store.Cause != "locked" {
		t.Errorf("the state is %+v", st.Store)
	}
	unlock()
	if !grantedWithin(l, 5*time.Second) {
		t.Error("no permit for 5 s after the lock is free")
	}
}

// A process stopped with the lock blocks the others: they are refused after a second, and depart
// again as soon as it continues.
func TestProcessesStoppedWithTheLockHoldOthers(t *testing.T) {
	dir, limit := private(t), throttle.TokenBucket(1000, time.Second, 10)
	p := begins(t, dir, limit.String(), 2, 1<<30, "HOSTLOCAL_RETURNS=1")
	<-p.began
	store := &hostlocal.Store{Dir: dir}
	defer store.Close()
	l, err := store.Limiter("drained", limit)
	if err != nil || !grantedWithin(l, 5*time.Second) {
		t.Fatal("no permit at first", err)
	}
	stopWithTheLock(t, p, dir)
	began := time.Now()
	err = refusedWithin(l, 10*time.Second)
	t.Logf("%v after %v", err, time.Since(began))
	if !errors.Is(err, hostlocal.ErrUnavailable) || time.Since(began) < 900*time.Millisecond {
		t.Errorf("beside a stopped process callers get %v after %v, want ErrUnavailable after a second", err, time.Since(began))
	}
	goesOn := time.Now()
	_ = p.Process.Signal(syscall.SIGCONT)
	if !grantedWithin(l, 5*time.Second) {
		t.Error("no permit for 5 s after the process goes on")
	}
	for p.last.Load() < goesOn.UnixNano() {
		if time.Sleep(time.Millisecond); time.Since(goesOn) > 5*time.Second {
			t.Fatal("the process that was stopped departs no more")
		}
	}
	p.kill()
}

// stopWithTheLock stops a process while it has the lock of the one lane of a directory.
func stopWithTheLock(t *testing.T, p *process, dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.lane"))
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(rand.N(3 * time.Millisecond)) {
		_ = p.Process.Signal(syscall.SIGSTOP)
		_, _ = syscall.Wait4(p.Process.Pid, nil, syscall.WUNTRACED, nil) // all of its threads have stopped
		if staysLocked(f) {
			return
		}
		_ = p.Process.Signal(syscall.SIGCONT)
	}
	p.kill()
	t.Fatal("the process was never stopped with the lock")
}

// staysLocked reports whether the lock of a file stays held: this process may hold it for a moment.
func staysLocked(f *os.File) bool {
	for range 20 {
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}

// A directory of another user is refused, so that no other user can plant a state there.
func TestDirectoriesOfOtherUsersAreRefused(t *testing.T) {
	dir := "/usr"
	if os.Geteuid() == 0 {
		if dir = t.TempDir(); os.Chown(dir, 65534, -1) != nil {
			needs.Lacks(t, "right to change the owner of a directory")
		}
	}
	_, err := (&hostlocal.Store{Dir: dir}).Limiter("k")
	if err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Errorf("the error for a directory of another user is %v", err)
	}
}

// held locks the only lane of a directory until the returned function is called.
func held(t *testing.T, dir string) (unlock func()) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.lane"))
	if len(files) != 1 {
		t.Fatalf("the directory has %v, want one file", files)
	}
	holder, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err == nil {
		err = syscall.Flock(int(holder.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() { _ = holder.Close() })
}

// A lane is made at once while another process has the lock of its file: the lanes of other keys
// wait meanwhile, and in a bubble no time passes while they do. What was learned is exchanged when
// the lock is free.
func TestALockedLaneIsMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := private(t)
		first := hostlocal.NewAt(dir, "k")
		defer first.(throttle.Remote).Close()
		if !grantedWithin(first, 5*time.Second) {
			t.Fatal("no permit at first")
		}
		unlock := held(t, dir)
		began := time.Now()
		l := hostlocal.NewAt(dir, "k")
		learner := &taught{unsent: "learned here"}
		l.(store.Replicator).Replicate(learner)
		if took := time.Since(began); took != 0 {
			t.Errorf("the lane was made after %v, want 0s", took)
		}
		unlock()
		_ = l.(throttle.Remote).Close() // waits for the exchange
		if len(learner.applied) != 1 {
			t.Errorf("once the lock is free the learner has applied %q, want its one message", learner.applied)
		}
	})
}

// Close writes permits that came back while another process had the lock. If the lock stays held,
// Close returns soon, and its error says what is lost.
func TestCloseWritesWhatIsPending(t *testing.T) {
	for name, test := range map[string]struct {
		busy time.Duration
		lost bool
	}{
		"lock held for a moment": {busy: 20 * time.Millisecond},
		"lock held for long":     {busy: 10 * time.Second, lost: true},
	} {
		dir, limit, one := private(t), throttle.SlidingLog(2, time.Hour), throttle.Request{N: 1}
		a, b := &hostlocal.Store{Dir: dir}, &hostlocal.Store{Dir: dir}
		defer b.Close()
		la, errA := a.Limiter("k", limit)
		lb, errB := b.Limiter("k", limit)
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		now := throttle.InstantOf(time.Now())
		first := granted(t, la, now)
		grant, err := la.Take(now, one)
		if err != nil || !first || grant.At > now || granted(t, lb, now) {
			t.Fatal(name, "two permits are not granted at first, or a third is", err)
		}
		unlock := held(t, dir)
		la.Refund(now, grant, one)
		timer := time.AfterFunc(test.busy, unlock)
		began := time.Now()
		err = a.Close()
		t.Logf("%s: %v after %v", name, err, time.Since(began))
		if (err != nil) != test.lost || time.Since(began) > 5*time.Second {
			t.Errorf("%s: Close() = %v after %v", name, err, time.Since(began))
		}
		timer.Stop()
		unlock()
		within := 5 * time.Second // on a busy machine
		if test.lost {
			within = 100 * time.Millisecond
		}
		if grantedWithin(lb, within) == test.lost {
			t.Errorf("%s: the permit that came back is granted: %v, want %v", name, test.lost, !test.lost)
		}
	}
}

// A caller whose process never gets the lock is not refused while others write: then no process is
// stopped with it.
func TestCrowdsAtTheLockAreNotRefused(t *testing.T) {
	a, b, path := pair(t, throttle.TokenBucket(1000, time.Second, 1000))
	holder, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close() }()
	for i := range 300 {
		now := midnight.Add(time.Duration(i) * 10 * time.Millisecond)
		if !granted(t, a, now) {
			t.Fatal("the process that has the lock is not granted a permit")
		}
		if err := syscall.Flock(int(holder.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		if g, err := b.Take(now, throttle.Request{N: 1}); err != nil || g.At <= now {
			t.Fatalf("after %v without the lock: %v, %v, want to ask again", now.Sub(midnight), g.At, err)
		}
		_ = syscall.Flock(int(holder.Fd()), syscall.LOCK_UN)
	}
}

// Callers are refused after a second, until it is repaired, if others may write to the directory. The
// same if a directory or a link is in the place of the file.
func TestUnusableFilesRefuseUntilTheyAreMended(t *testing.T) {
	for name, fault := range map[string]struct{ begin, end func(path string) error }{
		"others may write": {
			func(path string) error { return errors.Join(os.Remove(path), os.Chmod(filepath.Dir(path), 0o777)) },
			func(path string) error { return os.Chmod(filepath.Dir(path), 0o700) },
		},
		"a directory in its place": {
			func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
			os.Remove,
		},
		"a link in its place": {
			func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/null", path)) },
			os.Remove,
		},
	} {
		dir := private(t)
		store := &hostlocal.Store{Dir: dir}
		l, err := store.Limiter("k", throttle.TokenBucket(1000, time.Second, 1))
		if err != nil || !grantedWithin(l, 5*time.Second) {
			t.Fatal(name, "no permit at first", err)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*.lane"))
		if err := fault.begin(files[0]); err != nil {
			t.Fatal(name, err)
		}
		if err := refusedWithin(l, 10*time.Second); !errors.Is(err, hostlocal.ErrUnavailable) {
			t.Errorf("%s: callers get %v, want ErrUnavailable", name, err)
		} else {
			t.Log(err)
		}
		if err := fault.end(files[0]); err != nil {
			t.Fatal(name, err)
		}
		if !grantedWithin(l, 5*time.Second) {
			t.Errorf("%s: no permit for 5 s after the fault has ended", name)
		}
		_ = store.Close()
	}
}

// A full disk, here a limit on file sizes, causes refusals after a second, until it ends. Permits
// that could not be written were not spent. It runs in a process of its own, because the go command
// makes this one write a file, too.
func TestFullDisksRefuseUntilThereIsRoom(t *testing.T) {
	if os.Getenv("HOSTLOCAL_FULL") == "" {
		p := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		p.Env = append(os.Environ(), "HOSTLOCAL_FULL=yes")
		if out, err := p.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	l := hostlocal.NewAt(private(t), "k", throttle.TokenBucket(1, time.Hour, 2))
	defer l.(throttle.Remote).Close()
	if !granted(t, l, midnight) {
		t.Fatal("no permit at first")
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	small := old
	small.Cur = 16
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err) // lowering a bound needs no privilege
	}
	var refusal error
	for i := range 80 {
		if granted, err := l.Take(midnight.Add(time.Duration(i)*20*time.Millisecond), throttle.Request{N: 1}); err != nil {
			refusal = err
		} else if granted.At <= midnight.Add(time.Duration(i)*20*time.Millisecond) {
			t.Error("a permit is granted that was not written")
		}
	}
	_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old)
	if !errors.Is(refusal, hostlocal.ErrUnavailable) {
		t.Errorf("callers get %v, want ErrUnavailable", refusal)
	}
	later := midnight.Add(2 * time.Second)
	if !granted(t, l, later) || granted(t, l, later) {
		t.Error("one permit was left, and one is not granted when there is room again")
	}
}
