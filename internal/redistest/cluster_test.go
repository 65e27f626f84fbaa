package redistest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/redistest"
)

// answers fails the test unless the server's answer begins as wanted.
func answers(t *testing.T, s *redistest.Server, begin string, args ...string) {
	t.Helper()
	reply, err := s.Do(args...)
	answer := fmt.Sprint(reply)
	if err != nil {
		answer = err.Error()
	}
	if !strings.HasPrefix(answer, begin) {
		t.Errorf("Do(%q): %s, want %s ...", args, answer, begin)
	}
}

func TestClusterKnowsTheSlots(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	want(t, "len(Addrs())", len(c.Addrs()), 3)
	for _, key := range []string{"", "a", "foo", "user:1000", "{user}:1", "a{b}c{d}", "{}x", "{", "a{b", "a}b{c}", "{{x}}", "é"} {
		want(t, "Slot("+key+")", int64(c.Slot(key)), do(t, c.Server(0), "CLUSTER", "KEYSLOT", key))
		do(t, c.Server(c.Owner(key)), "SET", key, "value")
		answers(t, c.Server((c.Owner(key)+1)%3), fmt.Sprintf("MOVED %d %s", c.Slot(key), c.Server(c.Owner(key)).Addr()), "GET", key)
	}
}

func TestClusterMovesASlot(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2)
	from := c.Owner("{k}1")
	to := 1 - from
	for i := range 250 {
		do(t, c.Server(from), "SET", fmt.Sprintf("{k}%d", i), "value")
	}
	c.MoveSlot("{k}1", to)
	want(t, "Owner({k}1)", c.Owner("{k}1"), to)
	for i := range 250 {
		want(t, "GET", do(t, c.Server(to), "GET", fmt.Sprintf("{k}%d", i)), "value")
	}
	answers(t, c.Server(from), "MOVED ", "GET", "{k}1")
	c.MoveSlot("{k}1", to)
	c.MoveSlot("{k}1", from)
	answers(t, c.Server(from), "value", "GET", "{k}1")
}

func TestMoveAsks(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2)
	from := c.Owner("{k}1")
	old, next := c.Server(from), c.Server(1-from)
	do(t, old, "MSET", "{k}1", "1", "{k}2", "2")
	m := c.BeginMove("{k}1", 1-from)
	answers(t, old, "1", "GET", "{k}1")
	m.Keys("{k}1")
	answers(t, old, "ASK ", "GET", "{k}1")
	answers(t, old, "TRYAGAIN ", "MGET", "{k}1", "{k}2")
	answers(t, next, "MOVED ", "GET", "{k}1")
	m.Keys()
	m.End()
	answers(t, old, "MOVED ", "GET", "{k}1")
	answers(t, next, "[1 2]", "MGET", "{k}1", "{k}2")
}

func TestClusterIsDownWithoutAMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, "--cluster-node-timeout", "500")
	c.Server(2).Kill()
	for limit := time.Now().Add(20 * time.Second); ; {
		_, err := c.Server(0).Do("GET", "a")
		if err != nil && strings.HasPrefix(err.Error(), "CLUSTERDOWN ") {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("GET: %v, want CLUSTERDOWN", err)
		}
	}
	c.Server(2).Restart()
	c.Await()
	do(t, c.Server(c.Owner("a")), "SET", "a", "value")
}
