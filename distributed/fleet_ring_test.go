package distributed_test

import (
	"log/slog"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// newRing starts shards and returns a client for them.
func newRing(t *testing.T, shards int) (*redis.Ring, map[string]*redistest.Server) {
	t.Helper()
	servers, addrs := make(map[string]*redistest.Server), make(map[string]string)
	for i := range shards {
		s := redistest.Start(t)
		servers[s.Addr()], addrs["shard"+strconv.Itoa(i)] = s, s.Addr()
	}
	ring := redis.NewRing(&redis.RingOptions{Addrs: addrs})
	t.Cleanup(func() { ring.Close() })
	return ring, servers
}

// shardOf returns the server of the fleet's lane, and the other servers.
func shardOf(t *testing.T, ring *redis.Ring, servers map[string]*redistest.Server) (owner *redistest.Server, others []*redistest.Server) {
	t.Helper()
	shard, err := ring.GetShardClientForKey(laneKey)
	if err != nil {
		t.Fatal(err)
	}
	for addr, s := range servers {
		if addr != shard.Options().Addr {
			others = append(others, s)
		}
	}
	return servers[shard.Options().Addr], others
}

// newRingFleet starts three replicas with a config over a Ring of three shards.
func newRingFleet(t *testing.T, c config) (f *fleet, owner *redistest.Server, others []*redistest.Server) {
	t.Helper()
	ring, servers := newRing(t, 3)
	owner, others = shardOf(t, ring, servers)
	var addrs []string
	for addr := range servers {
		addrs = append(addrs, addr)
	}
	c.Redis.Addrs = addrs // no server of its own
	f = newFleet(t, plan{config: c})
	for range 3 {
		f.adopt(f.way(), redis.NewRing(ring.Options()))
	}
	f.steady()
	f.pass(moment)
	return f, owner, others
}

// The lane does not notice that another shard is lost.
func TestRingLaneStaysOnItsShard(t *testing.T) {
	t.Parallel()
	f, _, others := newRingFleet(t, patiently())
	for _, s := range others {
		s.Kill()
	}
	f.pass(2 * time.Second) // a Ring of go-redis would have moved keys by then
	f.members[0].queue.Pause(moment)
	await(t, "the news of a pause", func() bool { return f.members[1].queue.State().Paused != 0 })
	f.pass(2 * moment)
	for i, s := range f.states() {
		if s.Failures > 0 || s.Lost {
			t.Errorf("replica %d: %d calls failed, lost %v %q, though its shard is up", i, s.Failures, s.Lost, s.Cause)
		}
	}
	f.judge()
}

// The shard of the lane is lost. The policy for a loss is enforced, no other shard grants the
// limits again, and the shard restarts empty.
func TestRingLaneIsLostWithItsShard(t *testing.T) {
	t.Parallel()
	f, owner, _ := newRingFleet(t, config{})
	from := now()
	spells := f.suffer(3, 2*time.Second, owner.Kill, func() { owner.Restart() })
	f.pass(moment)
	f.judge(append(spells, f.lost(from, now()))...)
}

// Lanes lie on all shards, and each shard fails alone.
func TestRingShardsFailAlone(t *testing.T) {
	t.Parallel()
	ring, servers := newRing(t, 3)
	store := distributed.New(ring, "fleet")
	store.Logger = slog.New(slog.DiscardHandler)
	store.Replicas = 1
	store.Deadline, store.MaxDeadline = patience, patience
	defer store.Close()
	const lanes = 30
	at := make(map[string][]int) // by shard
	var queues []*shaping.Queue
	var limiters []throttle.Limiter
	for i := range lanes {
		l, err := store.Limiter("lane"+strconv.Itoa(i), throttle.TokenBucket(1000, time.Second, 10))
		if err != nil {
			t.Fatal(err)
		}
		limiters, queues = append(limiters, l), append(queues, shaping.NewQueue(l))
	}
	all := func() {
		for _, q := range queues {
			if err := q.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	all()
	for i := range lanes {
		shard, err := ring.GetShardClientForKey("weir:1:{fleet/lane" + strconv.Itoa(i) + "}")
		if err != nil {
			t.Fatal(err)
		}
		at[shard.Options().Addr] = append(at[shard.Options().Addr], i)
	}
	if len(at) != 3 {
		t.Errorf("lanes by shard: %v, want some on each", at)
	}
	dead, _ := shardOf(t, ring, servers)
	dead.Kill()
	for range 5 {
		all()
		time.Sleep(distributed.DefaultBreakFor / 2)
	}
	for i, l := range limiters {
		s, gone := l.State(queues[i].Now()).Store, slices.Contains(at[dead.Addr()], i)
		if s.Lost != gone || !gone && s.Failures+s.Local > 0 {
			t.Errorf("lane %d, whose shard is gone: %v: lost %v, %d calls failed, %d granted here", i, gone, s.Lost, s.Failures, s.Local)
		}
	}
}
