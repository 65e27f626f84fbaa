package distributed_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// moment is how long a fault lasts, and the time before and after it.
const moment = 700 * time.Millisecond

// Redis stops answering, in each possible way. The replicas use their shares, and share again soon
// after Redis is back.
func TestR1RefusedPacesHereAndComesBack(t *testing.T) {
	testOutage(t, func(p *redistest.Proxy) {
		p.Refuse()
		p.Drop()
	})
}

func TestR2BlackHoledDialsPaceHereAndComeBack(t *testing.T) {
	testOutage(t, func(p *redistest.Proxy) {
		p.BlackHoleSYN()
		p.Drop()
	})
}

func TestR3SwallowedRepliesPaceHereAndComeBack(t *testing.T) {
	testOutage(t, (*redistest.Proxy).Swallow)
}

func testOutage(t *testing.T, fault func(p *redistest.Proxy)) {
	t.Helper()
	t.Parallel()
	f := newFleet(t, plan{members: 3})
	f.steady()
	f.pass(moment)
	spells := f.suffer(3, 2*moment, each(f.links, fault), each(f.links, func(p *redistest.Proxy) {
		p.Pass()
		p.Drop() // connections that lost a reply stay silent
	}))
	f.pass(moment)
	f.judge(spells...)
}

// The same with replicas that prefetch and are far from Redis. Cut off, they first spend the
// permits in hand, which cover one round trip, and then their share.
func TestR1ReplicasThatPrefetchSpendWhatTheyHold(t *testing.T) {
	t.Parallel()
	for _, trip := range []time.Duration{0, 600 * time.Millisecond} {
		t.Run(trip.String(), func(t *testing.T) {
			t.Parallel()
			c := config{Deadline: 2 * time.Second}
			c.prefetch(3)
			f := newFleet(t, plan{members: 3, config: c})
			each(f.links, func(p *redistest.Proxy) { p.Delay(trip) })()
			f.steady()
			f.pass(moment)
			spells := f.suffer(3, 2*moment, each(f.links, gone), each(f.links, (*redistest.Proxy).Pass))
			f.pass(moment)
			f.judge(spells...)
		})
	}
}

// Slow replies are used if they arrive before the deadline. Later ones are not waited for.
func TestR4SlowRepliesAreUsedUntilTheDeadline(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3, config: config{Deadline: 300 * time.Millisecond}})
	f.steady()
	const way = 30 * time.Millisecond
	each(f.links, func(p *redistest.Proxy) { p.Delay(way) })()
	from := now()
	f.pass(moment)
	t.Logf("replies %v late: %d departures in %v", way, f.journal.count(from, now()), now().Sub(from))
	for i, s := range f.states() {
		if s.Lost {
			t.Logf("replica %d lost the store: %v", i, s.Cause)
		}
	}
	spells := f.suffer(3, 2*moment, each(f.links, func(p *redistest.Proxy) { p.Delay(2 * time.Second) }), each(f.links, func(p *redistest.Proxy) {
		p.Pass()
		p.Drop()
	}))
	f.pass(moment)
	f.judge(spells...)
}

// Half of the replicas are cut off, and use their share while the others continue.
func TestR25CutOffReplicasUseTheirShare(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 4})
	f.steady()
	f.pass(moment)
	spells := f.suffer(2, 2*moment, each(f.links[:2], func(p *redistest.Proxy) {
		p.Refuse()
		p.Drop()
	}), each(f.links[:2], (*redistest.Proxy).Pass))
	f.pass(moment)
	f.judge(spells...)
}

// Connections fail and recover again and again. Replicas that are cut off use their share, and
// Redis does not grant the same permits again.
func TestR24FlappingGrantsNothingTwice(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3})
	f.steady()
	from := now()
	for _, p := range f.links {
		p.Flap(f.random.Uint64(), 200*time.Millisecond)
	}
	f.pass(4 * moment)
	each(f.links, (*redistest.Proxy).Pass)()
	back := f.back()
	f.judge(f.cutOff(3, from, back))
}

// Redis accepts no more clients: replicas do not dial in a storm.
func TestR23MaxClientsIsNoStampedeOfDials(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3, config: config{Callers: 20}})
	f.steady()
	f.pass(moment)
	dials := func() (n int) {
		for _, p := range f.links {
			n += p.Traffic().Accepted
		}
		return n
	}
	before := dials()
	began := time.Now()
	spells := f.suffer(3, 2*moment, func() {
		f.do("CONFIG", "SET", "maxclients", "1")
		each(f.links, (*redistest.Proxy).Drop)()
	}, func() { f.do("CONFIG", "SET", "maxclients", "1000") })
	made, took := dials()-before, time.Since(began)
	t.Logf("%d dials in %v of 3 replicas with 20 callers", made, took)
	// A probe and a subscription each dial at most once in 10 ms. Each failure doubles that delay,
	// up to the breaker's half second.
	if most := 3 * (20 + int(took/(100*time.Millisecond))); made > most {
		t.Errorf("%d dials in %v, want at most %d", made, took, most)
	}
	f.judge(spells...)
}

// One connection serves any number of lanes and callers.
func TestR23APoolOfOneServesEveryLane(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	given := place{Addrs: []string{server.Addr()}, PoolSize: 1}.client()
	defer given.Close()
	store := distributed.New(given, "pool")
	defer store.Close()
	var callers sync.WaitGroup
	for i := range 8 {
		l, err := store.Limiter("lane"+strconv.Itoa(i), throttle.TokenBucket(rate, time.Second, burst))
		if err != nil {
			t.Fatal(err)
		}
		q := shaping.NewQueue(l)
		for range 4 {
			callers.Go(func() {
				for range 20 {
					if err := q.Wait(t.Context()); err != nil {
						t.Errorf("lane %d: %v", i, err)
					}
				}
			})
		}
	}
	callers.Wait()
}
