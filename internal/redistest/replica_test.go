package redistest_test

import (
	"strings"
	"testing"

	"github.com/weirgo/weir/internal/redistest"
)

func TestReplicaHasWhatTheMasterHad(t *testing.T) {
	master := redistest.Start(t)
	do(t, master, "SET", "key", "value")
	r := redistest.Replicate(t, master)
	want(t, "GET", do(t, r, "GET", "key"), "value")
	if _, err := r.Do("SET", "key", "other"); err == nil || !strings.HasPrefix(err.Error(), "READONLY ") {
		t.Errorf("SET: %v, want READONLY", err)
	}
	r.Promote()
	do(t, r, "SET", "key", "other")
}

func TestReplicaBehindAProxyLosesWrites(t *testing.T) {
	master := redistest.Start(t)
	p := redistest.NewProxy(t, master.Addr())
	r := redistest.Start(t)
	do(t, master, "SET", "n", "100")
	r.Follow(p.Addr())
	p.Swallow()
	do(t, master, "SET", "n", "150")
	master.Kill()
	r.Promote()
	want(t, "GET", do(t, r, "GET", "n"), "100")
}
