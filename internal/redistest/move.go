package redistest

import (
	"net"
	"strconv"
)

// A Move is a slot on its way from one server of a cluster to another. Until its end the old server
// answers ASK for a key that it does not have, and TRYAGAIN if it has only some of them. After its
// end it answers MOVED.
type Move struct {
	c        *Cluster
	slot     int
	from, to int
}

// MoveSlot moves the slot of the key, with all keys in it, to the server with
// the index, while the cluster serves it.
func (c *Cluster) MoveSlot(key string, to int) {
	c.tb.Helper()
	if c.Owner(key) == to {
		return
	}
	m := c.BeginMove(key, to)
	m.Keys()
	m.End()
}

// BeginMove opens the slot of the key at both servers and leaves the keys
// where they are.
func (c *Cluster) BeginMove(key string, to int) *Move {
	c.tb.Helper()
	m := &Move{c: c, slot: slotOf(key), from: c.Owner(key), to: to}
	m.set(m.to, "IMPORTING", c.ids[m.from])
	m.set(m.from, "MIGRATING", c.ids[m.to])
	return m
}

// Keys moves all keys in the slot, or only the named ones.
func (m *Move) Keys(keys ...string) {
	m.c.tb.Helper()
	if len(keys) > 0 {
		m.migrate(keys)
		return
	}
	for {
		reply := m.c.nodes[m.from].must("CLUSTER", "GETKEYSINSLOT", strconv.Itoa(m.slot), "100")
		for _, key := range reply.([]any) {
			keys = append(keys, key.(string))
		}
		if len(keys) == 0 {
			return
		}
		m.migrate(keys)
		keys = keys[:0]
	}
}

// End gives the slot to the new server first: for a moment two servers have it, rather than none.
func (m *Move) End() {
	m.c.tb.Helper()
	m.set(m.to, "NODE", m.c.ids[m.to])
	m.set(m.from, "NODE", m.c.ids[m.to])
	for i := range m.c.nodes {
		if i != m.from && i != m.to {
			m.set(i, "NODE", m.c.ids[m.to])
		}
	}
	m.c.own(m.slot, m.to)
}

func (m *Move) migrate(keys []string) {
	m.c.tb.Helper()
	host, port, _ := net.SplitHostPort(m.c.nodes[m.to].Addr())
	command := []string{"MIGRATE", host, port, "", "0", "5000", "KEYS"}
	m.c.nodes[m.from].must(append(command, keys...)...)
}

func (m *Move) set(i int, what, id string) {
	m.c.tb.Helper()
	m.c.nodes[i].must("CLUSTER", "SETSLOT", strconv.Itoa(m.slot), what, id)
}
