package reserve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A recorder is a learner that keeps the messages it applied, in order.
type recorder struct {
	mu       sync.Mutex
	messages []string
	unsent   store.Entry
	pace     store.Pacing
	last     store.FleetState
	ordinals []int64
	sizes    []int // of the fleet, as the limiter said
	lapsed   []store.OrdinalRange
}

func (r *recorder) Propose(v store.FleetState) store.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.unsent
	r.unsent, r.last, r.sizes = store.Entry{}, v, append(r.sizes, v.Replicas)
	r.lapsed = append(r.lapsed, v.Canceled...)
	return w
}

func (r *recorder) Apply(message []byte, ordinal int64, _ throttle.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages, r.ordinals = append(r.messages, string(message)), append(r.ordinals, ordinal)
}

func (r *recorder) Snapshot() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return []byte(strings.Join(r.messages, ","))
}

func (r *recorder) Restore(learned []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = strings.Split(string(learned), ",")
}

func (r *recorder) Pacing(store.FleetState) store.Pacing {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.messages) == 0 {
		return store.Pacing{}
	}
	return r.pace
}

func (r *recorder) add(w store.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsent.Data = append(r.unsent.Data, w.Data...)
	r.unsent.Uncounted += w.Uncounted
	r.unsent.Revoke = r.unsent.Revoke || w.Revoke
}

func (r *recorder) applied() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.messages)
}

// A team is replicas that learn together.
type team struct {
	t      *testing.T
	server *redistest.Server
}

// A member is one of them.
type member struct {
	*recorder
	limiter *Limiter
	queue   *shaping.Queue
}

func (c *team) join(pace store.Pacing, limits ...throttle.Limit) *member {
	c.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: c.server.Addr()})
	c.t.Cleanup(func() { _ = rdb.Close() })
	hub := newHub(c.t, rdb)
	const patience = 15 * time.Second // a busy machine loses no store
	hub.Set.FirstDeadline, hub.Set.Deadline, hub.Set.MaxDeadline = patience, patience, patience
	l := open(c.t, hub, limits...)
	pace.TTL = time.Minute
	s := &member{&recorder{pace: pace}, l, nil}
	s.limiter.Replicate(s.recorder)
	s.queue = shaping.NewQueue(l)
	return s
}

func (m *member) send(text string) {
	m.add(store.Entry{Data: []byte(text)})
	m.limiter.Flush()
}

// call waits for a permit, and returns its ordinal.
func (m *member) call(t *testing.T) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	turn := shaping.Turn{N: 1}
	if err := m.queue.WaitTurn(ctx, &turn); err != nil {
		t.Fatal(err)
	}
	return turn.Departure().Grant.Ref.Ordinal
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func newTeam(t *testing.T) *team {
	return &team{t, redistest.Start(t)}
}

var counted = store.Pacing{Counted: true}

// Every replica applies all messages in one order, one that joins later, too.
func TestReplicasApplyTheSame(t *testing.T) {
	c := newTeam(t)
	a, b := c.join(counted), c.join(counted)
	for i := range 40 {
		[]*member{a, b}[i%2].send(fmt.Sprint("w", i))
	}
	a.send("last of a")
	b.send("last of b")
	eventually(t, "both know all", func() bool {
		a.limiter.Flush()
		b.limiter.Flush()
		return strings.Count(strings.Join(a.applied(), " "), "w") == 40 && slices.Equal(a.applied(), b.applied())
	})
	if !slices.Equal(a.applied(), b.applied()) {
		t.Errorf("one applied %v, the other %v", a.applied(), b.applied())
	}
	late := c.join(counted)
	late.call(t)
	if got := late.applied(); !slices.Equal(got, a.applied()) {
		t.Errorf("one that joined later applied %v, not %v", got, a.applied())
	}
}

// What a replica has learned while its last call was on its way is sent although it closes.
func TestAClosedReplicaSendsWhatItLearned(t *testing.T) {
	c := newTeam(t)
	a, b := c.join(counted), c.join(counted)
	a.send("first")
	eventually(t, "it leaves", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.unsent.Data == nil })
	a.send("last")
	if err := a.limiter.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both arrive", func() bool { b.limiter.Flush(); return strings.Join(b.applied(), "") == "firstlast" })
}

// A replica that knows of no other counts as one: what it sees in flight stands for no
// other's calls.
func TestAReplicaIsAloneUntilItKnowsOfOthers(t *testing.T) {
	c := newTeam(t)
	for want := 1; want <= 2; want++ {
		s := c.join(counted)
		s.send("first")
		s.call(t)
		s.mu.Lock()
		first, last := s.sizes[0], s.last.Replicas
		s.mu.Unlock()
		if first != 1 || last > want {
			t.Errorf("replica %d received %d as the number of replicas, then %d", want, first, last)
		}
	}
}

// A snapshot takes the place of the messages before it, so that they stay few.
func TestMessagesAreCondensed(t *testing.T) {
	c := newTeam(t)
	a, b := c.join(counted), c.join(counted)
	message := strings.Repeat("x", 800)
	for i := range 100 {
		a.send(message)
		eventually(t, "it is applied", func() bool { return len(a.applied()) > i })
	}
	size, err := c.server.Do("HSTRLEN", a.limiter.Key, "entries")
	if err != nil || size.(int64) > 2*script.Condense {
		t.Errorf("Redis holds %v bytes of messages (%v)", size, err)
	}
	if b.call(t); !slices.Equal(a.applied(), b.applied()) {
		t.Errorf("one applied %d messages, the other %d", len(a.applied()), len(b.applied()))
	}
}

// Permits are counted over all replicas.
func TestOrdinalsAreTheFleets(t *testing.T) {
	c := newTeam(t)
	a, b := c.join(counted), c.join(counted)
	a.add(store.Entry{Data: []byte("begin"), Uncounted: 7})
	a.limiter.Flush()
	eventually(t, "it is applied", func() bool { return len(a.applied()) == 1 })
	seen := make(map[int64]bool)
	for range 20 {
		for _, s := range []*member{a, b} {
			n := s.call(t)
			if n <= 7 || n > 47+4 || seen[n] {
				t.Fatalf("a departure is number %d, after %v", n, seen)
			}
			seen[n] = true
		}
	}
}

// The pace of the replica that has applied most holds for all.
func TestThePaceHoldsForAll(t *testing.T) {
	c := newTeam(t)
	paced := store.Pacing{Counted: true, Interval: 10 * time.Millisecond}
	a, b := c.join(paced), c.join(counted) // b would let all go
	a.send("slow")
	eventually(t, "it is applied", func() bool { return len(a.applied()) == 1 })
	b.pace = paced
	began := time.Now()
	var all sync.WaitGroup
	for _, s := range []*member{a, b} {
		for range 4 {
			all.Go(func() {
				for range 10 {
					s.call(t)
				}
			})
		}
	}
	all.Wait()
	if took := time.Since(began); took < 750*time.Millisecond {
		t.Errorf("80 calls at 100/s took %v", took)
	}
}

// One by one: the next goes when the last has been unanswered for a second.
func TestOneGoesAlone(t *testing.T) {
	c := newTeam(t)
	alone := store.Pacing{Counted: true, Probe: true}
	a, b := c.join(alone), c.join(alone)
	a.send("refused")
	eventually(t, "it is applied", func() bool { return len(a.applied()) == 1 })
	var all sync.WaitGroup
	began := time.Now()
	for _, s := range []*member{a, b} {
		all.Go(func() { s.call(t) })
	}
	all.Wait()
	if took := time.Since(began); took < 900*time.Millisecond || took > 4*time.Second {
		t.Errorf("the second of two that go alone went after %v", took)
	}
}

// After a flush, and after a restart with nothing kept, all is there again, and
// a new process has nothing to learn.
func TestAFlushLosesNothingThatWasLearned(t *testing.T) {
	c := newTeam(t)
	a, b := c.join(counted), c.join(counted)
	for i := range 10 {
		a.send(fmt.Sprint("w", i))
		eventually(t, "it is applied", func() bool { return len(a.applied()) > i })
	}
	b.call(t)
	last := max(a.call(t), b.call(t))
	if _, err := c.server.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	b.send("after")
	eventually(t, "both know it", func() bool {
		a.limiter.Flush()
		b.limiter.Flush()
		return len(a.applied()) == 11 && slices.Equal(a.applied(), b.applied())
	})
	late := c.join(counted)
	if n := late.call(t); n <= last {
		t.Errorf("after the flush a departure is number %d, before it was %d", n, last)
	}
	if got := late.applied(); !slices.Equal(got, a.applied()) {
		t.Errorf("one that joined after the flush applied %v, not %v", got, a.applied())
	}
}

// After a flush replicas that had applied different messages meet at one place. What the one that is
// behind sends first is not lost, nor is what only the other had applied, unless the first sent as
// many bytes as that before the other called.
func TestAFlushFindsReplicasAtDifferentPlaces(t *testing.T) {
	for _, after := range []string{"x", strings.Repeat("x", 100), "x," + strings.Repeat("x", 100)} {
		c := newTeam(t)
		behind, ahead := c.join(counted), c.join(counted)
		sendFrom := func(m *member, text string) {
			m.send(text)
			eventually(t, text+" is applied", func() bool { return slices.Contains(m.applied(), text) })
		}
		sendFrom(behind, "first")
		sendFrom(ahead, "ahead")
		if _, err := c.server.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		sent := append([]string{"first"}, strings.Split(after, ",")...)
		if after == "x" {
			sent = append(sent, "ahead")
		}
		for text := range strings.SplitSeq(after, ",") {
			sendFrom(behind, text)
		}
		eventually(t, "both know all", func() bool {
			behind.limiter.Flush()
			ahead.limiter.Flush()
			got := behind.applied()
			for _, text := range sent {
				if !slices.Contains(got, text) {
					return false
				}
			}
			return slices.Equal(got, ahead.applied())
		})
	}
}

// Messages that somebody else has overwritten cost what they said. What is sent after them is
// learned by all, and by one that joins later.
func TestMessagesThatNobodyCanReadAreReplaced(t *testing.T) {
	c := newTeam(t)
	a, b := c.join(counted), c.join(counted)
	a.send("before")
	eventually(t, "both know it", func() bool {
		b.limiter.Flush()
		return slices.Contains(a.applied(), "before") && slices.Contains(b.applied(), "before")
	})
	const overwrite = "for _, lane in ipairs(redis.call('KEYS', '*')) do local e = redis.call('HGET', lane, 'entries'); if e then redis.call('HSET', lane, 'entries', ('?'):rep(#e)) end end"
	if _, err := c.server.Do("EVAL", overwrite, "0"); err != nil {
		t.Fatal(err)
	}
	a.send("after")
	late := c.join(counted)
	late.send("late")
	eventually(t, "all know what was sent after", func() bool {
		for _, m := range []*member{a, b, late} {
			m.limiter.Flush()
			if got := m.applied(); !slices.Contains(got, "after") || !slices.Contains(got, "late") {
				return false
			}
		}
		return true
	})
}
