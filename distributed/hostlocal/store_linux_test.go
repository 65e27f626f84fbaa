package hostlocal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/throttle"
)

// If a directory becomes read-only, a lane whose file is open continues. A new lane returns an
// error at once that names the file.
func TestReadOnlyDirectoriesServeOpenLanes(t *testing.T) {
	top, err := os.MkdirTemp("", "hostlocal") // others may look into it, unlike into that of a test
	if err == nil {
		err = os.Chmod(top, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(top) }()
	dir := filepath.Join(top, "weir")
	store := &hostlocal.Store{Dir: dir}
	defer store.Close()
	l, err := store.Limiter("k", throttle.TokenBucket(1000, time.Second, 1))
	if err != nil || !grantedWithin(l, 5*time.Second) {
		t.Fatal("no permit at first", err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer asNobody(t)()
	if _, err := store.Limiter("new"); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), dir) {
		t.Errorf("the error for a new lane is %v", err)
	}
	for began := time.Now(); time.Since(began) < 1200*time.Millisecond; time.Sleep(50 * time.Millisecond) { // the path was checked
		if !grantedWithin(l, time.Second) {
			t.Fatalf("no permit %v after the directory became read-only", time.Since(began))
		}
	}
}

// asNobody gives this thread the rights of another user, if it may write everywhere.
func asNobody(t *testing.T) (end func()) {
	runtime.LockOSThread()
	if os.Geteuid() == 0 {
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		_ = syscall.Setfsuid(os.Geteuid())
		runtime.UnlockOSThread()
	}
}
