package distributed_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/throttle"
)

// A hangar is replicas that share calls in flight. Their workers call continuously, and each call
// is in flight for some time.
type hangar struct {
	t     *testing.T
	over  sync.WaitGroup
	start time.Time
	bases []*base

	mu       sync.Mutex
	flying   int
	most     int // most calls in flight at once
	landed   []int
	occupied time.Duration // flights times their duration
	changed  time.Time
	above    time.Duration // for which more than bound were in flight
	bound    int
}

// A base is one replica of a hangar.
type base struct {
	hangar  *hangar
	index   int
	store   *distributed.Store
	flights store.Flights

	mu      sync.Mutex
	woken   chan struct{} // closed when waiting callers should look again
	waiting int
	gone    bool // set when the workers are to stop
}

func newHangar(t *testing.T, bound int) *hangar {
	return &hangar{t: t, bound: bound, start: time.Now(), changed: time.Now()}
}

// join adds a replica over a client, with a number of workers.
func (h *hangar) join(client redis.UniversalClient, set func(*distributed.Store)) *base {
	h.t.Helper()
	b := &base{hangar: h, index: len(h.bases), store: distributed.New(client, "fleet"), woken: make(chan struct{})}
	b.store.Logger = slog.New(slog.DiscardHandler)
	if set != nil {
		set(b.store)
	}
	var err error
	if b.flights, err = b.store.Flights("vendor", h.bound); err != nil {
		h.t.Fatal(err)
	}
	b.flights.Notify(b.wake)
	h.mu.Lock()
	h.bases, h.landed = append(h.bases, b), append(h.landed, 0)
	h.mu.Unlock()
	h.t.Cleanup(func() { b.store.Close() })
	return b
}

func (b *base) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.woken)
	b.woken = make(chan struct{})
}

// line changes the number of waiting callers by n.
func (b *base) line(n int) (woken chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting += n
	b.flights.Await(b.waiting)
	return b.woken
}

// depart waits for a slot, and reports whether it got one.
func (b *base) depart() bool {
	if b.flights.Board() {
		return true
	}
	woken := b.line(1)
	defer b.line(-1)
	for !b.flights.Board() {
		<-woken
		if b.left() {
			return false
		}
		woken = b.line(0)
	}
	return true
}

func (b *base) left() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gone
}

// leave stops the workers.
func (b *base) leave() {
	b.mu.Lock()
	b.gone = true
	b.mu.Unlock()
	b.wake()
}

// fly makes one call.
func (b *base) fly(service time.Duration) bool {
	if !b.depart() {
		return false
	}
	h := b.hangar
	h.count(1)
	time.Sleep(service)
	h.count(-1)
	h.mu.Lock()
	h.landed[b.index]++
	h.mu.Unlock()
	if b.flights.Land() {
		b.wake()
	}
	return true
}

// work runs workers until the replica is left.
func (b *base) work(workers int, service time.Duration) {
	for range workers {
		b.hangar.over.Go(func() {
			for !b.left() && b.fly(service) {
			}
		})
	}
}

func (h *hangar) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.occupied += time.Duration(h.flying) * now.Sub(h.changed)
	if h.flying > h.bound {
		h.above += now.Sub(h.changed)
	}
	h.flying += n
	h.most, h.changed = max(h.most, h.flying), now
}

// used returns the share of the slots in use since its last call.
func (h *hangar) used() float64 {
	h.count(0)
	h.mu.Lock()
	defer h.mu.Unlock()
	took := time.Since(h.start)
	part := h.occupied.Seconds() / float64(h.bound) / took.Seconds()
	h.occupied, h.start = 0, time.Now()
	return part
}

// now returns the calls in flight, and the most since the last anew.
func (h *hangar) now() (flying, most int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.flying, h.most
}

// exceeded returns for how long more calls than the bound were in flight.
func (h *hangar) exceeded() (above time.Duration, most int) {
	h.count(0)
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.above, h.most
}

// anew resets the counts of flights.
func (h *hangar) anew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.most = h.flying
	clear(h.landed)
}

func (h *hangar) stop() {
	for _, b := range h.bases {
		b.leave()
	}
	h.over.Wait()
}

func (h *hangar) flights() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, landed := range h.landed {
		n += landed
	}
	return n
}

func (h *hangar) calls() (n uint64) {
	for _, b := range h.bases {
		n += b.flights.State().Calls
	}
	return n
}

// busy runs the hangar for d. It returns the share of the slots in use, and the store calls for
// each flight.
func (h *hangar) busy(d time.Duration) (used, calls float64) {
	h.used()
	flights, called := h.flights(), h.calls()
	time.Sleep(d)
	return h.used(), float64(h.calls()-called) / float64(h.flights()-flights)
}

const slots, service = 16, 50 * time.Millisecond

// Saturated replicas share the slots equally and call the store seldom, even with fewer slots than
// replicas.
func TestSlotsAreSharedEvenly(t *testing.T) {
	for _, replicas := range []int{1, 3, 8, 24} {
		if raced && replicas != 3 { // the detector makes the script's interpreter ten times slower
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			server := redispipe.Start(t, time.Millisecond)
			h := newHangar(t, slots)
			for range replicas {
				h.join(server.Client(t), func(s *distributed.Store) { s.Lease = 3 * time.Second }).work(20, service)
			}
			time.Sleep(2 * time.Second) // late subscribers have received the revocations too
			_, before := h.now()
			h.anew()
			used, calls := h.busy(4 * time.Second)
			_, most := h.now()
			h.stop()
			t.Logf("%d replicas: %.3f used, %.3f calls a flight, flights of each %v", replicas, used, calls, h.landed)
			if most = max(most, before); used < 0.95 || calls > 0.5 || most > slots {
				t.Errorf("%d replicas: %.3f of the slots used with %.3f calls a flight and %d in flight, want 0.95 at least with 0.5 and %d at most", replicas, used, calls, most, slots)
			}
			if least, even := slices.Min(h.landed), h.flights()/replicas; 10*least < 8*even {
				t.Errorf("%d replicas: one had %d flights of %d", replicas, least, h.flights())
			}
		})
	}
}

// A bound that was learned holds for all replicas as soon as one of them knows it, and is used. Without one no slots
// are leased.
func TestSlotsFollowWhatIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, time.Millisecond)
		h := newHangar(t, store.MostFlights)
		for range 3 {
			h.join(server.Client(t), nil).work(10, service)
		}
		for i, step := range []struct {
			most, want int // calls in flight
			knows      int // replicas that learn it at once; the others learn it 100 ms later
		}{{0, 30, 3}, {6, 6, 3}, {16, 16, 1}, {2, 2, 1}, {9, 9, 2}, {0, 30, 3}, {5, 5, 3}} {
			at := throttle.InstantOf(time.Now())
			for j, b := range h.bases {
				if j == step.knows {
					time.Sleep(100 * time.Millisecond)
				}
				b.flights.Bound(step.most, at)
				b.wake()
			}
			time.Sleep(time.Second)
			h.anew()
			h.used()
			time.Sleep(2 * time.Second)
			used := h.used() * float64(h.bound)
			if _, most := h.now(); most > step.want || used < 0.9*float64(step.want) {
				t.Errorf("step %d: %.1f in flight, and %d at most, want %d", i, used, most, step.want)
			}
			if called := h.calls(); i == 0 && called > 0 {
				t.Errorf("%d calls to the store without a bound", called)
			}
		}
		h.stop()
	})
}

// A replica with few calls soon gets a slot, and a busy one uses the rest.
func TestSeldomCallerIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, time.Millisecond)
		h := newHangar(t, slots)
		h.join(server.Client(t), nil).work(40, service)
		seldom := h.join(server.Client(t), nil)
		time.Sleep(time.Second)
		h.used()
		longest := time.Duration(0)
		for range 40 {
			time.Sleep(rand.N(100 * time.Millisecond))
			began := time.Now()
			seldom.fly(service)
			longest = max(longest, time.Since(began)-service)
		}
		used, calls := h.used(), float64(h.calls())/float64(h.flights())
		t.Logf("it waited %v at most; %.3f used, %.3f calls a flight", longest, used, calls)
		if _, most := h.now(); longest > 2*service || used < 0.9 || most > slots {
			t.Errorf("a seldom caller waited %v with %.3f used and %d in flight, want at most %v, 0.9 at least, %d", longest, used, most, 2*service, slots)
		}
		h.stop()
	})
}

// A replica keeps the slot that it has in turn for a minute until a call departs, and then for 250 ms. It
// keeps those that it has for good.
func TestATurnBeginsWithACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, time.Millisecond)
		replicas := func(key string, most int, wants ...int) (all [2]store.Flights) {
			for i := range all {
				opened := distributed.New(server.Client(t), "vendor")
				t.Cleanup(func() { _ = opened.Close() })
				var err error
				if all[i], err = opened.Flights(key, most); err != nil {
					t.Fatal(err)
				}
				all[i].Notify(func() {})
				all[i].Await(wants[i])
				time.Sleep(10 * time.Millisecond)
			}
			return all
		}
		one := replicas("one", 1, 1, 1)
		if turn := one[0].Turn(); turn < 59*time.Second || turn > time.Minute {
			t.Errorf("another replica wants the slot: it is kept for %v, want a minute", turn)
		}
		time.Sleep(4 * time.Second)
		if room, _ := one[1].Room(); room > 0 || !one[0].Board() {
			t.Fatal("the slot was not kept for its first call")
		}
		if turn := one[0].Turn(); turn != 250*time.Millisecond {
			t.Errorf("a call departed, and the slot is kept for %v, want 250 ms", turn)
		}
		busy := replicas("busy", 1, 1, 0)
		if !busy[0].Board() {
			t.Fatal("the slot is not free")
		}
		time.Sleep(time.Second)
		busy[1].Await(1)
		time.Sleep(100 * time.Millisecond)
		if turn := busy[0].Turn(); turn > 250*time.Millisecond {
			t.Errorf("a call is in flight, and the slot is kept for %v, want 250 ms", turn)
		}
		for i, flights := range replicas("three", 3, 3, 3) {
			if turn := flights.Turn(); turn != 0 {
				t.Errorf("replica %d has a slot for good, and keeps it for %v", i, turn)
			}
		}
	})
}

// Unused slots go back after two moments of idleness, to replicas that need them.
func TestQuietReplicaHoldsNoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, time.Millisecond)
		h := newHangar(t, slots)
		first, second := h.join(server.Client(t), nil), h.join(server.Client(t), nil)
		first.work(slots, service)
		time.Sleep(time.Second)
		if n := first.flights.State().Slots; n != slots {
			t.Fatalf("the only replica has %d slots, want %d", n, slots)
		}
		first.leave()
		time.Sleep(service + 250*time.Millisecond)
		if n := first.flights.State().Slots; n != 0 {
			t.Errorf("a quiet replica has %d slots, want none", n)
		}
		calls := h.calls()
		time.Sleep(time.Minute)
		if n := h.calls() - calls; n > 0 {
			t.Errorf("%d calls to the store without callers", n)
		}
		second.work(slots, service)
		time.Sleep(100 * time.Millisecond)
		if n, _ := h.now(); n != slots {
			t.Errorf("the other has %d in flight, want %d", n, slots)
		}
		h.stop()
	})
}

// Close gives unused slots back at once.
func TestClosedReplicaGivesItsSlotsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, time.Millisecond)
		h := newHangar(t, 1)
		first, second := h.join(server.Client(t), nil), h.join(server.Client(t), nil)
		first.fly(service)
		first.store.Close()
		began := time.Now()
		second.fly(service)
		if waited := time.Since(began) - service; waited > 50*time.Millisecond {
			t.Errorf("the next waited %v for a slot that was given back", waited)
		}
		if first.flights.Board() {
			t.Error("a closed replica has a flight")
		}
	})
}

// severed is a client whose connections can be cut, for good.
type severed struct {
	*redis.Client
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func sever(t *testing.T, of *redis.Client) *severed {
	c, opt := new(severed), *of.Options()
	dial := opt.Dialer
	opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.cut {
			near, far := net.Pipe()
			return near, far.Close()
		}
		conn, err := dial(ctx, network, addr)
		c.conns = append(c.conns, conn)
		return conn, err
	}
	c.Client = redis.NewClient(&opt)
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *severed) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// The slots of a killed replica with calls in flight return when its lease expires, and not before.
func TestSlotsOfAKilledReplicaReturnWithItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, time.Millisecond)
		h := newHangar(t, slots)
		way := sever(t, server.Client(t))
		first := h.join(way.Client, nil)
		for range slots {
			h.over.Go(func() { first.fly(2 * time.Minute) })
		}
		time.Sleep(time.Minute) // its lease is renewed
		if n, _ := h.now(); n != slots {
			t.Fatalf("%d in flight, want %d", n, slots)
		}
		way.sever()
		died := time.Now()
		second := h.join(server.Client(t), nil)
		second.fly(0)
		came := time.Since(died)
		if least, most := distributed.DefaultLease*2/3-time.Second, distributed.DefaultLease+10*time.Millisecond; came < least || came > most {
			t.Errorf("the first slot came back after %v, want between %v and %v", came, least, most)
		}
		h.stop()
	})
}

// While Redis is lost a lease is used to its end, and then the policy applies.
func TestSlotsWithoutRedis(t *testing.T) {
	for _, c := range []struct {
		loss        distributed.Loss
		after, cold int // calls in flight: when the leases are over, and of a replica that never had one
		refuses     bool
	}{
		{distributed.FailLocal, 2, 1, false},
		{distributed.FailOpen, slots, slots, false},
		{distributed.FailClosed, 0, 0, true},
	} {
		t.Run(c.loss.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := redispipe.Start(t, time.Millisecond)
				h := newHangar(t, slots)
				set := func(s *distributed.Store) { s.OnLoss = c.loss }
				var all []*base
				for range 4 {
					b := h.join(server.Client(t), set)
					b.work(20, service)
					all = append(all, b)
				}
				cold := h.join(server.Client(t), set)
				time.Sleep(time.Second)
				server.Break(redispipe.Silent)
				time.Sleep(5 * time.Second)
				for i, b := range all {
					if n := b.flights.State().Slots; n != slots/4 {
						t.Errorf("replica %d has %d slots while its lease runs, want %d", i, n, slots/4)
					}
				}
				cold.line(1)
				time.Sleep(6 * time.Second)
				for _, b := range all {
					if s := b.flights.State(); s.Slots != c.after || !s.Lost {
						t.Errorf("%d slots when the lease is over, want %d: %+v", s.Slots, c.after, s)
					}
				}
				n, err := cold.flights.Room()
				if n != c.cold || errors.Is(err, distributed.ErrUnavailable) != c.refuses {
					t.Errorf("a replica that never reached Redis has %d slots, %v; want %d", n, err, c.cold)
				}
				cold.line(-1)
				server.Break(redispipe.Healthy)
				time.Sleep(3 * time.Second)
				h.anew()
				used, _ := h.busy(2 * time.Second)
				if _, most := h.now(); used < 0.95 || most > slots {
					t.Errorf("%.3f of the slots used and %d in flight once Redis is back, want 0.95 at least, and %d at most", used, most, slots)
				}
				h.stop()
			})
		})
	}
}

// Redis that forgot everything receives the calls in flight again. Until then others may get slots
// in addition: at most all of them, for at most a third of a lease.
func TestForgottenSlotsAreReportedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, time.Millisecond)
		h := newHangar(t, slots)
		first, second := h.join(server.Client(t), nil), h.join(server.Client(t), nil)
		first.work(20, service)
		time.Sleep(time.Second)
		server.Forget()
		second.work(20, service)
		time.Sleep(distributed.DefaultLease/3 + 2*service)
		longest := distributed.DefaultLease/3 + 2*service
		if above, most := h.exceeded(); above > longest || most > 2*slots {
			t.Errorf("above the bound for %v with %d in flight, want %v and %d at most", above, most, longest, 2*slots)
		}
		h.anew()
		used, _ := h.busy(2 * time.Second)
		if _, most := h.now(); used < 0.95 || most > slots {
			t.Errorf("%.3f used and %d in flight a third of a lease later, want 0.95 at least, and %d", used, most, slots)
		}
		h.stop()
	})
}

// Replicas, calls and connections come and go at random. Never more calls than slots are in flight,
// and in the end every slot is free again.
func TestSlotsHoldTheBound(t *testing.T) {
	histories := uint64(6)
	switch {
	case long:
		histories = 500
	case raced:
		histories = 1
	}
	for seed := range histories {
		synctest.Test(t, func(t *testing.T) { testBound(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func testBound(t *testing.T, random *rand.Rand) {
	bound, replicas, trip := 1+random.IntN(8), 1+random.IntN(6), time.Duration(random.IntN(20))*time.Millisecond
	h, server := newHangar(t, bound), redispipe.Start(t, trip)
	for range replicas {
		way, own := sever(t, server.Client(t)), rand.New(rand.NewPCG(random.Uint64(), 0))
		b := h.join(way.Client, func(s *distributed.Store) { s.OnLoss, s.Lease = distributed.FailClosed, 3*time.Second })
		h.over.Go(func() { b.live(own, way) })
	}
	h.over.Wait()
	if _, most := h.now(); most > bound {
		t.Errorf("%d replicas %v away had %d in flight, want %d at most", replicas, trip, most, bound)
	}
	time.Sleep(3 * time.Second)
	last := h.join(server.Client(t), nil)
	last.work(bound, 2*time.Second)
	time.Sleep(time.Second)
	if n, _ := h.now(); n != bound {
		t.Errorf("%d in flight at the end, want %d", n, bound)
	}
	h.stop()
}

// live makes random calls at a replica for a while. At the end it may lose its connection to Redis.
func (b *base) live(random *rand.Rand, way *severed) {
	end := time.Now().Add(time.Duration(random.IntN(8000)) * time.Millisecond)
	var calls sync.WaitGroup
	for time.Now().Before(end) {
		for range random.IntN(10) {
			service := time.Duration(random.ExpFloat64() * float64(100*time.Millisecond))
			calls.Go(func() { b.fly(service) })
		}
		time.Sleep(time.Duration(random.ExpFloat64() * float64(200*time.Millisecond)))
	}
	if random.IntN(3) == 0 {
		way.sever()
	}
	b.leave()
	calls.Wait()
}
