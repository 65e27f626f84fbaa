package distributed

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// ownRing returns a Ring like the given one, as ownClient does. A lane stays on its
// shard also while that is down, and the policy for a loss holds: a Ring that moves keys
// to other shards does so at each replica at another time, so that for seconds the
// vendor would see the limits twice.
func ownRing(given *redis.Ring, set *settings) *redis.Ring {
	opt := *given.Options()
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.DialTimeout, opt.PoolTimeout = set.firstDeadline, set.firstDeadline
	opt.ReadTimeout, opt.WriteTimeout = set.firstDeadline, set.firstDeadline
	opt.ContextTimeoutEnabled = true
	opt.MinIdleConns = 0
	opt.PipelinePoolSize = -1
	opt.DisableIdentity, opt.ClientName = true, ""
	opt.HeartbeatFrequency = time.Hour
	opt.HeartbeatFn = func(context.Context, *redis.Client) bool { return true }
	newShard := opt.NewClient
	opt.NewClient = func(opt *redis.Options) *redis.Client {
		opt.Dialer = telling(opt)
		opt.MaintNotificationsConfig = quiet()
		return newShard(opt)
	}
	return redis.NewRing(&opt)
}

// publishers returns the clients by which the news are heard: that of each shard of a
// Ring, for a shard tells what concerns its lanes.
func publishers(client redis.UniversalClient) []redis.UniversalClient {
	ring, ok := client.(*redis.Ring)
	if !ok {
		return []redis.UniversalClient{client}
	}
	var shards []redis.UniversalClient
	for _, shard := range ring.GetShardClients() {
		shards = append(shards, shard)
	}
	return slices.Clip(shards)
}
