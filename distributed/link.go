package distributed

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/redis/go-redis/v9"
)

// A link is a store's connection to Redis, from its first limiter to its last.
type link struct {
	store  *Store
	client redis.UniversalClient
	own    bool // the client is the store's, which closes it

	mu    sync.Mutex
	nodes map[string]*node // by address, of a Cluster or a Ring; "": the only one, or one that is not known yet

	subscription sync.Once
	stop         context.CancelFunc
	stopped      context.Context
	hearing      sync.WaitGroup

	down    atomic.Bool // the last call failed; written under mu
	warned  string      // the cause of the loss that was logged last; "": it is over
	logged  time.Time   // when that was
	denied  atomic.Bool // a missing grant for the channel was logged
	guessed atomic.Bool // the share of a lane was logged that is a guess
	clashed time.Time   // when another layout was logged last

	overdue atomic.Int64 // when the operator was told of void permits, likewise
}

func newLink(s *Store) *link {
	k := &link{store: s, nodes: make(map[string]*node)}
	k.client, k.own = ownClient(s.given, &s.set)
	k.stopped, k.stop = context.WithCancel(context.Background())
	if !k.own {
		s.logger().Warn("weir: the Redis client is of a kind whose options cannot be read: it is used as it is, and may try again what the store must not", "namespace", s.namespace)
	}
	if addr := plainAddress(s.given); addr != "" {
		s.logger().Warn("weir: shared limits travel without TLS beyond private networks", "address", addr)
	}
	return k
}

func (k *link) close() {
	k.stop()
	k.hearing.Wait()
	for _, n := range k.nodes {
		n.close()
	}
	if k.own {
		_ = k.client.Close() // its connections are gone either way
	}
}

// command begins the words of a command that runs a script. The first two, which run
// fills in, are its name and the script.
func command(words, keys []any) []any {
	return append(append(words, nil, nil, len(keys)), keys...)
}

// boxed returns keys as words.
func boxed(keys []string) []any {
	words := make([]any, len(keys))
	for i, key := range keys {
		words[i] = key
	}
	return words
}

// run runs a script once, by a command of such words.
func (k *link) run(ctx context.Context, p program, words []any) (any, error) {
	words[0], words[1] = "evalsha", p.hash
	v, err := k.eval(ctx, words)
	if err == nil {
		return v, nil
	}
	if redis.HasErrorPrefix(plain(err), "NOSCRIPT") {
		words[0], words[1] = "eval", p.source
		v, err = k.eval(ctx, words)
	}
	if err = plain(err); err == nil {
		return v, nil
	}
	if c, ok := k.client.(*redis.ClusterClient); ok && k.own {
		c.ReloadState(ctx) // in the background: another node may be the master by now
	}
	if ctx.Err() != nil {
		return nil, context.DeadlineExceeded // whatever the socket says of it
	}
	return nil, err
}

// eval sends a command that runs a script. It says all that a Cluster's client asks the
// nodes for otherwise, before each call, by a command for which the user may have no
// grant.
func (k *link) eval(ctx context.Context, words []any) (any, error) {
	cmd := redis.NewCmd(ctx, words...)
	cmd.SetFirstKeyPos(3)
	cmd.SetStepCount(1)
	_ = k.client.Process(ctx, cmd) // the result has the error
	return cmd.Result()
}

// ended notes how a call to a node ended, and logs it when that changes.
func (k *link) ended(n *node, cause string, err error) {
	if cause == "" && !k.down.Load() {
		return
	}
	lost, back := k.loss(cause)
	log := k.store.logger().With("namespace", k.store.namespace)
	if lost {
		log.LogAttrs(context.Background(), slog.LevelWarn,
			"weir: shared limits lost: "+cmp.Or(explanations[cause], "Redis does not answer"),
			slog.String("cause", cause), slog.String("address", addressOf(k.client, n.addr)), slog.String("error", textOf(err, passwordOf(k.client))),
			slog.String("policy", k.store.set.onLoss.String()))
	}
	if back {
		log.Info("weir: shared limits are back")
	}
}

// loss takes in the cause with which a call ended, and reports whether to log a loss, or
// its end. A loss may come and go: it is logged once a second at most. A cause that only an
// operator can end is logged also if it comes later in the loss.
func (k *link) loss(cause string) (lost, back bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	lost = cause != ""
	began := k.down.Swap(lost) != lost
	if !lost {
		back, k.warned = k.warned != "", ""
		return false, back
	}
	now := time.Now()
	if now.Sub(k.logged) > time.Second && (began || lasting(cause) && !lasting(k.warned)) {
		k.logged, k.warned = now, cause
		return true, false
	}
	return false, false
}

// lacksGrant logs, once, that the grant for the channel is missing. Each time it reports
// that to the watch of a limiter.
func (k *link) lacksGrant(client redis.UniversalClient, began time.Time, err error) {
	if w := k.store.watched(); w != nil {
		w.called(store.OperationSubscribe, began, time.Since(began), "channel")
	}
	if k.denied.Swap(true) {
		return
	}
	k.store.logger().LogAttrs(context.Background(), slog.LevelWarn,
		"weir: the store's user of Redis lacks a grant for the channel: a refusal at one replica does not stop the others, "+
			"and each learns of it with its next call; grant it by ACL SETUSER <user> &weir:"+layout+":* +subscribe +publish",
		slog.String("namespace", k.store.namespace), slog.String("cause", "channel"), slog.String("address", addressOf(client, "")), slog.String("error", textOf(err, passwordOf(k.client))))
}

// compare takes in the layout that another store of the namespace writes. If it differs, it
// logs that, and announces its own once more, for the other to log it too.
func (k *link) compare(client redis.UniversalClient, other string) {
	if _, err := strconv.ParseUint(other, 10, 16); err != nil || other == k.store.layout {
		return
	}
	k.mu.Lock()
	now := time.Now()
	due := now.Sub(k.clashed) >= time.Minute
	if due {
		k.clashed = now
	}
	k.mu.Unlock()
	if !due {
		return
	}
	k.store.logger().LogAttrs(context.Background(), slog.LevelWarn,
		"weir: a version of another layout uses this namespace: the two share nothing, and the vendor may see each limit twice",
		slog.String("namespace", k.store.namespace), slog.String("this", k.store.layout), slog.String("other", other))
	k.announce(client)
}

// addressOf returns the address of a node, or that of a client that has one node. For one
// that Sentinel finds, go-redis says so.
func addressOf(client redis.UniversalClient, node string) string {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().Addr
	case *redis.ClusterClient:
		return cmp.Or(node, strings.Join(c.Options().Addrs, ","))
	}
	return node
}

// passwordOf returns the password that a client was given; "": none, or a function.
func passwordOf(client redis.UniversalClient) string {
	switch c := client.(type) {
	case *redis.Client:
		return c.Options().Password
	case *redis.ClusterClient:
		return c.Options().Password
	case *redis.Ring:
		return c.Options().Password
	}
	return ""
}

// node returns the node of an address.
func (k *link) node(addr string) *node {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.nodes[addr]
	if n == nil {
		n = newNode(k.store, connections(k.client))
		n.addr = addr
		k.nodes[addr] = n
	}
	return n
}

// nodeOf returns the node that holds a key: that of before if the Cluster does not tell.
// The nodes of a Cluster, and of a Ring, fail one by one.
func (k *link) nodeOf(key string, before *node) *node {
	c, cluster := k.client.(*redis.ClusterClient)
	if ring, ok := k.client.(*redis.Ring); ok {
		if shard, err := ring.GetShardClientForKey(key); err == nil {
			return k.node(shard.Options().Addr)
		}
	}
	if !cluster {
		return before
	}
	ctx, cancel := context.WithTimeout(k.stopped, k.store.set.deadline)
	defer cancel()
	master, err := c.MasterForKey(ctx, key)
	if err != nil {
		return before
	}
	return k.node(master.Options().Addr)
}

// connections returns how many a client has to each node, at most.
func connections(client redis.UniversalClient) int {
	most, active := 10*runtime.GOMAXPROCS(0), 0 // as go-redis has it
	switch c := client.(type) {
	case *redis.Client:
		most, active = c.Options().PoolSize, c.Options().MaxActiveConns
	case *redis.ClusterClient:
		most, active = c.Options().PoolSize, c.Options().MaxActiveConns
	case *redis.Ring:
		most, active = cmp.Or(c.Options().PoolSize, most), c.Options().MaxActiveConns
	}
	if active > 0 {
		most = min(most, active)
	}
	return max(most, 1)
}
