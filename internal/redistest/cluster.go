package redistest

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
)

// A Cluster is some masters that share the slots of a Redis Cluster. A master without an answer for
// two seconds (cluster-node-timeout) counts as failed for the others. They then answer only
// CLUSTERDOWN, unless cluster-require-full-coverage is no. Its methods are safe for concurrent use,
// except for moves of the same slot.
type Cluster struct {
	tb    testing.TB
	nodes []*Server
	ids   []string

	mu     sync.Mutex
	owners [slots]int
}

// StartCluster starts n masters, with options as [Start] takes them, each
// with an even share of the slots in order, and returns when all serve.
func StartCluster(tb testing.TB, n int, args ...string) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb}
	for i := range n {
		s := Start(tb, append(clusterOptions(tb), args...)...)
		c.nodes = append(c.nodes, s)
		c.ids = append(c.ids, s.must("CLUSTER", "MYID").(string))
		c.assign(i, i*slots/n, (i+1)*slots/n)
		c.meet(i)
	}
	c.Await()
	return c
}

func clusterOptions(tb testing.TB) []string {
	tb.Helper()
	options := []string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}
	if theProgram(tb).major < 7 { // there the port is that of clients and 10000
		return options
	}
	return append(options, "--cluster-port", strconv.Itoa(freePort(tb)))
}

// Await returns when all servers serve, as they do some time after a restart of one.
func (c *Cluster) Await() {
	c.tb.Helper()
	for _, s := range c.nodes {
		if err := await("the cluster", func() (bool, error) { return c.serves(s), nil }); err != nil {
			c.tb.Fatalf("redistest: %v\n%s", err, s.log())
		}
	}
}

// Addrs returns the hosts and ports of the servers.
func (c *Cluster) Addrs() []string { return addrs(c.nodes) }

// Server returns the server with the index, from 0.
func (c *Cluster) Server(i int) *Server { return c.nodes[i] }

// Slot returns the slot of the key, from 0 to 16383.
func (c *Cluster) Slot(key string) int { return slotOf(key) }

// Owner returns the index of the server that has the slot of the key, even if it was killed.
func (c *Cluster) Owner(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owners[slotOf(key)]
}

func (c *Cluster) own(slot, i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owners[slot] = i
}

// assign gives the server the slots of [from, to).
func (c *Cluster) assign(i, from, to int) {
	c.tb.Helper()
	command := []string{"CLUSTER", "ADDSLOTS"}
	for slot := from; slot < to; slot++ {
		command = append(command, strconv.Itoa(slot))
		c.own(slot, i)
	}
	c.nodes[i].must(command...)
}

// meet joins the server to those before it. Distinct epochs from the start save the cluster the
// time to resolve equal ones.
func (c *Cluster) meet(i int) {
	c.tb.Helper()
	c.nodes[i].must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	for _, s := range c.nodes[:i] {
		host, port, _ := net.SplitHostPort(s.Addr())
		meet := []string{"CLUSTER", "MEET", host, port}
		if bus := s.must("CONFIG", "GET", "cluster-port").([]any); len(bus) > 1 {
			meet = append(meet, bus[1].(string))
		}
		c.nodes[i].must(meet...)
	}
}

// serves reports whether the server knows all the others and their slots.
func (c *Cluster) serves(s *Server) bool {
	reply, _ := s.Do("CLUSTER", "INFO")
	info := fields(reply)
	return info["cluster_state"] == "ok" && info["cluster_size"] == fmt.Sprint(len(c.nodes)) &&
		info["cluster_known_nodes"] == info["cluster_size"] && info["cluster_slots_ok"] == fmt.Sprint(slots)
}
