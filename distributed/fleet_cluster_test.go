package distributed_test

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// laneKey is the key of the state of a fleet's lane, unless a plan names another.
const laneKey = "weir:1:{fleet/lane}"

func newClusterFleet(t *testing.T, limits ...throttle.Limit) (*fleet, *redistest.Cluster) {
	t.Helper()
	c := redistest.StartCluster(t, 3)
	f := newFleet(t, plan{members: 3, config: config{Redis: place{Addrs: c.Addrs(), Cluster: true}, Limits: limits}})
	f.steady()
	f.pass(moment)
	return f, c
}

// The slot of the lane moves between nodes, with a state of two keys.
func TestR10ReshardingIsFollowed(t *testing.T) {
	t.Parallel()
	f, c := newClusterFleet(t, throttle.TokenBucket(rate, time.Second, burst), throttle.SlidingLog(rate, time.Second))
	for i := range 6 {
		m := c.BeginMove(laneKey, (c.Owner(laneKey)+1)%3)
		f.pass(time.Duration(f.random.Int64N(int64(moment / 4))))
		if i%2 == 0 {
			m.Keys(laneKey) // its log has not moved yet
			f.pass(time.Duration(f.random.Int64N(int64(moment / 10))))
		}
		m.Keys()
		m.End()
		f.pass(time.Duration(f.random.Int64N(int64(moment / 2))))
	}
	f.back()
	f.judge()
}

// Another master is killed, and the cluster refuses all calls.
func TestR11AClusterThatIsDownPacesHereAndComesBack(t *testing.T) {
	t.Parallel()
	f, c := newClusterFleet(t)
	other := c.Server((c.Owner(laneKey) + 1) % 3)
	owner := c.Server(c.Owner(laneKey))
	from := now()
	other.Kill()
	await(t, "the cluster to be down", func() bool {
		_, err := owner.Do("GET", "{fleet/lane}")
		return err != nil
	})
	f.pass(moment)
	other.Restart()
	awaitCluster(t, owner)
	back := f.back()
	f.pass(moment)
	f.judge(f.cutOff(3, from, back))
}

// The master of the lane is killed, and restarts empty.
func TestR11AKilledMasterOfTheLaneIsUsedAgain(t *testing.T) {
	t.Parallel()
	f, c := newClusterFleet(t)
	owner := c.Server(c.Owner(laneKey))
	from := now()
	spells := f.suffer(3, 2*moment, owner.Kill, func() {
		owner.Restart()
		awaitCluster(t, owner)
	})
	f.pass(moment)
	f.judge(append(spells, f.lost(from, now()))...)
}

// awaitCluster returns when a node serves the lane.
func awaitCluster(t *testing.T, node *redistest.Server) {
	t.Helper()
	await(t, "the cluster to serve", func() bool {
		_, err := node.Do("GET", "{fleet/lane}")
		return err == nil
	})
}

// The keys of a lane lie in one slot, whatever its names contain.
func TestR11AllKeysOfALaneLieOnOneSlot(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	given := place{Addrs: c.Addrs(), Cluster: true}.client()
	defer given.Close()
	for _, names := range [][2]string{{"a", "b"}, {"{a}", "{b}"}, {"a}b", "c{d"}, {"", ""}, {"é/", "%{}"}} {
		testOneSlot(t, given, names[0], names[1])
	}
}

func testOneSlot(t *testing.T, given redis.UniversalClient, namespace, lane string) {
	t.Helper()
	store := distributed.New(given, namespace)
	store.Deadline, store.MaxDeadline = patience, patience
	defer store.Close()
	log := throttle.SlidingLog(10, time.Second).Named("{" + lane + "}")
	l, err := store.Limiter(lane, log, throttle.TokenBucket(10, time.Second, 2))
	if err != nil {
		t.Fatal(err)
	}
	if err := shaping.NewQueue(l).Wait(t.Context()); err != nil {
		t.Errorf("%q, %q: %v", namespace, lane, err)
	}
	if s := l.State(now()).Store; s.Failures > 0 || s.Local > 0 {
		t.Errorf("%q, %q: %d calls of %d failed: %s", namespace, lane, s.Failures, s.Calls, s.Cause)
	}
}

// A master is killed together with its lanes. Lanes of other masters, old and new, are served as
// before.
func TestR11AKilledMasterIsLostToItsLanesAlone(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, "--cluster-require-full-coverage", "no")
	given := place{Addrs: c.Addrs(), Cluster: true}.client()
	defer given.Close()
	store := distributed.New(given, "fleet")
	store.Logger = slog.New(slog.DiscardHandler)
	store.Replicas = 1
	store.Deadline, store.MaxDeadline = patience, patience
	defer store.Close()
	open := func(lane string) (*shaping.Queue, throttle.Limiter) {
		l, err := store.Limiter(lane, throttle.TokenBucket(1000, time.Second, 10))
		if err != nil {
			t.Fatal(err)
		}
		q := shaping.NewQueue(l)
		if err := q.Wait(t.Context()); err != nil {
			t.Errorf("%s: %v", lane, err)
		}
		return q, l
	}
	const lanes = 30
	var queues []*shaping.Queue
	var limiters []throttle.Limiter
	for i := range lanes {
		q, l := open("lane" + strconv.Itoa(i))
		queues, limiters = append(queues, q), append(limiters, l)
	}
	dead := c.Owner("weir:1:{fleet/lane0}")
	c.Server(dead).Kill()
	for range 5 {
		for _, q := range queues {
			if err := q.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(distributed.DefaultBreakFor / 2) // calls detect a loss within two breaks
	}
	for i, l := range limiters {
		s, gone := l.State(queues[i].Now()).Store, c.Owner("weir:1:{fleet/lane"+strconv.Itoa(i)+"}") == dead
		if s.Lost != gone || !gone && s.Failures+s.Local > 0 {
			t.Errorf("lane %d, whose master is gone: %v: lost %v, %d calls failed, %d granted here", i, gone, s.Lost, s.Failures, s.Local)
		}
	}
	for i := range lanes {
		lane := "new" + strconv.Itoa(i)
		if c.Owner("weir:1:{fleet/"+lane+"}") != dead {
			if q, l := open(lane); l.State(q.Now()).Store.Local > 0 {
				t.Errorf("%s was granted here, though its master is up", lane)
			}
		}
	}
	c.Server(dead).Restart()
	await(t, "all lanes to be back", func() bool {
		for i, l := range limiters {
			if l.State(queues[i].Now()).Store.Lost {
				return false
			}
		}
		return true
	})
}
