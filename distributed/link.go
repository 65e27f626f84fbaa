package distributed

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

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

	down   atomic.Bool  // the last call failed
	warned atomic.Bool  // the operator was told of it
	logged atomic.Int64 // when that was, in nanoseconds since the epoch

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

// A program is a script in the words of the commands that run it. They are in interfaces
// already: to put a string in one takes memory, with each call.
type program struct{ hash, source any }

var (
	decides = program{script.Hash(), scriptSource}
	leases  = program{slotsScript.Hash(), slotsSource}
)

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

// ended notes how a call ended, and tells the operator when that changes.
func (k *link) ended(cause string) {
	lost := cause != ""
	if k.down.Load() == lost || !k.down.CompareAndSwap(!lost, lost) {
		return
	}
	log := k.store.logger().With("namespace", k.store.namespace)
	if now := time.Now().UnixNano(); lost && now-k.logged.Load() > int64(time.Second) { // it may come and go
		k.logged.Store(now)
		k.warned.Store(true)
		log.LogAttrs(context.Background(), slog.LevelWarn, "weir: shared limits lost: Redis does not answer",
			slog.String("cause", cause), slog.String("policy", k.store.set.onLoss.String()))
	}
	if !lost && k.warned.Swap(false) {
		log.Info("weir: shared limits are back")
	}
}

// node returns the node of an address.
func (k *link) node(addr string) *node {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.nodes[addr]
	if n == nil {
		n = newNode(k.store, connections(k.client))
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
