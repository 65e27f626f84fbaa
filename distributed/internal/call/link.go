package call

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"

	"github.com/redis/go-redis/v9"
)

// A Link is a store's connection to Redis, from its first limiter to its last.
type Link struct {
	hub    *Hub
	Client *conn.Client

	mu    sync.Mutex
	nodes map[string]*node // by address, of a Cluster or a Ring; "": the only one, or one that is not known yet

	subscription sync.Once
	Stop         context.CancelFunc
	stopped      context.Context
	listening    sync.WaitGroup

	down    atomic.Bool // the last call failed; written under mu
	warned  string      // the cause of the loss that was logged last; "": it is over
	logged  time.Time   // when that was
	denied  atomic.Bool // a missing grant for the channel was logged
	Guessed atomic.Bool // the guessed share of a lane was logged

	clashed seldom // the log of another layout
	Overdue seldom // that of void permits
}

// A seldom is an event of a namespace that is logged once a minute at most.
type seldom struct{ last atomic.Int64 }

// Due reports whether the event may be logged once more.
func (s *seldom) Due(now time.Time) bool {
	last := s.last.Load()
	return now.UnixNano()-last >= int64(time.Minute) && s.last.CompareAndSwap(last, now.UnixNano())
}

func newLink(h *Hub) *Link {
	k := &Link{hub: h, nodes: make(map[string]*node)}
	k.Client = conn.New(h.given, h.Set.FirstDeadline)
	k.stopped, k.Stop = context.WithCancel(context.Background())
	if !k.Client.Own {
		k.log(slog.LevelWarn, "weir: the Redis client is of a kind whose options cannot be read: it is used as it is, and may try again what the store must not")
	}
	if addr := conn.PlainAddress(h.given); addr != "" {
		h.Logger().Warn("weir: shared limits travel without TLS beyond private networks", "address", addr)
	}
	return k
}

func (k *Link) close() {
	k.Stop()
	k.listening.Wait()
	for _, n := range k.nodes {
		n.Close()
	}
	k.Client.Close()
}

// ended applies the cause of a call's end, and logs the beginning and the end of a loss. A loss may
// come and go, so its beginning is logged at most once a second. A cause that only an operator can
// end is logged even if it appears during a loss.
func (k *Link) ended(n *node, cause string, err error) {
	lost := cause != ""
	if !lost && !k.down.Load() {
		return
	}
	k.mu.Lock()
	now, began, back := time.Now(), k.down.Swap(lost) != lost, !lost && k.warned != ""
	warns := lost && now.Sub(k.logged) > time.Second && (began || conn.Lasting(cause) && !conn.Lasting(k.warned))
	if warns {
		k.logged = now
	}
	if warns || !lost {
		k.warned = cause
	}
	k.mu.Unlock()
	if warns {
		k.log(slog.LevelWarn, "weir: shared limits lost: "+conn.Explain(cause), "cause", cause,
			"address", conn.AddressOf(k.Client.Redis, n.Addr), "error", k.Client.Text(err), "policy", k.hub.Set.Policy)
	}
	if back {
		k.log(slog.LevelInfo, "weir: shared limits are back")
	}
}

func (k *Link) log(level slog.Level, text string, args ...any) {
	k.hub.Logger().With("namespace", k.hub.Namespace).Log(context.Background(), level, text, args...)
}

// lacksGrant logs, once, that the grant for the channel is missing. Each time it reports
// that to the watch of a limiter.
func (k *Link) lacksGrant(client redis.UniversalClient, began time.Time, err error) {
	if c := k.hub.watched(); c != nil {
		c.called(store.OperationSubscribe, began, time.Since(began), "channel")
	}
	if k.denied.Swap(true) {
		return
	}
	k.log(slog.LevelWarn,
		"weir: the store's user of Redis lacks a grant for the channel: a refusal at one replica does not stop the others, "+
			"and each learns of it with its next call; grant it by ACL SETUSER <user> &weir:"+script.Layout+":* +subscribe +publish",
		"cause", "channel", "address", conn.AddressOf(client, ""), "error", k.Client.Text(err))
}

// compare compares the layout that another store of the namespace writes. If it differs, it logs
// that, and publishes its own layout again so that the other logs it too.
func (k *Link) compare(client redis.UniversalClient, other string) {
	if _, err := strconv.ParseUint(other, 10, 16); err != nil || other == k.hub.Layout || !k.clashed.Due(time.Now()) {
		return
	}
	k.log(slog.LevelWarn, "weir: a version of another layout uses this namespace: the two share nothing, and the vendor may see each limit twice",
		"this", k.hub.Layout, "other", other)
	k.announce(client)
}

// A node is a server of Redis, and its clock.
type node struct {
	*conn.Node
	stepper
}

// node returns the node of an address.
func (k *Link) node(addr string) *node {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.nodes[addr]
	if n == nil {
		n = NewNode(k.hub, addr, k.Client.Connections())
		k.nodes[addr] = n
	}
	return n
}

// NewNode returns a node with room for a number of calls at once.
func NewNode(h *Hub, addr string, room int) *node {
	set := &h.Set
	return &node{
		Node:    conn.NewNode(addr, room, set.BreakAfter, set.BreakFor, &h.calling),
		stepper: stepper{longest: max(set.MaxDeadline, set.FirstDeadline)},
	}
}

// nodeOf returns the node that holds a key, or before if the Cluster does not return it. The nodes
// of a Cluster, and of a Ring, fail independently.
func (k *Link) nodeOf(key string, before *node) *node {
	if addr, ok := k.Client.Home(k.stopped, key, k.hub.Set.Deadline); ok {
		return k.node(addr)
	}
	return before
}
