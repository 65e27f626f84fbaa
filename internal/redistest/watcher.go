package redistest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// startWatcher starts a sentinel. So many have to agree that the master is
// gone when it has not answered for so many milliseconds. It asks and tells
// the others, by SENTINEL DEBUG of Redis 7, more often than is usual, and does
// not take itself for broken because the machine is busy; where there is no
// such command all takes longer.
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
	// A shorter publish-period or ping-period does harm. Of servers that change
	// places a sentinel hears once a second; it undoes a change that it was not
	// told of after four publish-periods, and passes over a replica of which it
	// has not heard for five ping-periods. A longer ping-period does too: so long
	// a sentinel waits to connect again to a server that has changed its master.
	_, _ = w.Do("SENTINEL", "DEBUG", "ping-period", "300", "info-period", "500", "publish-period", "500", "tilt-trigger", "60000")
	return w
}

// replicated says whether the sentinel has seen the replica follow the
// master.
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
