package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// startWatcher starts a sentinel, with its quorum and the milliseconds without an answer after
// which a master counts as down. SENTINEL DEBUG of Redis 7 makes it ask and publish more often than
// usual, and not suspect itself on a busy machine. Without that command everything takes longer.
func startWatcher(tb testing.TB, master string, quorum, down int) *Server {
	tb.Helper()
	w := newServer(tb)
	path := filepath.Join(w.dir, "sentinel.conf")
	host, port, _ := net.SplitHostPort(master)
	config := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s %[4]d\n"+
		"sentinel down-after-milliseconds %[1]s %[5]d\nsentinel failover-timeout %[1]s 3000\n",
		masterName, host, port, quorum, down)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	w.config = []string{path}
	w.start([]string{"--sentinel"})
	// A shorter publish-period or ping-period does harm. A sentinel asks servers that change roles
	// once a second. It undoes a change that was not published after four publish-periods, and
	// ignores a replica silent for five ping-periods. A longer ping-period does harm too: a
	// sentinel waits that long to reconnect to a server whose master changed.
	_, _ = w.Do("SENTINEL", "DEBUG", "ping-period", "300", "info-period", "500", "publish-period", "500", "tilt-trigger", "60000")
	return w
}

// replicated reports whether the sentinel has seen the replica follow the master.
func replicated(watcher *Server) bool {
	reply, _ := watcher.Do("SENTINEL", "REPLICAS", masterName)
	replicas, _ := reply.([]any)
	if len(replicas) != 1 {
		return false
	}
	state := pairs(replicas[0])
	return state["role-reported"] == "slave" && state["master-link-status"] == "ok" && state["flags"] == "slave"
}

// pairs reads a flat list of names and values.
func pairs(reply any) map[string]string {
	list, _ := reply.([]any)
	all := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		name, _ := list[i].(string)
		value, _ := list[i+1].(string)
		all[name] = value
	}
	return all
}
