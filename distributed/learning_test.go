package distributed

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

// A pupil is a learner that knows the words it heard, in order.
type pupil struct {
	mu    sync.Mutex
	words []string
	tells store.Entry
	pace  store.Pacing
	last  store.FleetState
	heard []int64 // ordinals
	sizes []int   // of the fleet, as it was told
}

func (p *pupil) Propose(v store.FleetState) store.Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.tells
	p.tells, p.last, p.sizes = store.Entry{}, v, append(p.sizes, v.Replicas)
	return w
}

func (p *pupil) Apply(told []byte, ordinal int64, _ throttle.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.words, p.heard = append(p.words, string(told)), append(p.heard, ordinal)
}

func (p *pupil) Snapshot() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return []byte(strings.Join(p.words, ","))
}

func (p *pupil) Restore(learned []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.words = strings.Split(string(learned), ",")
}

func (p *pupil) Pacing(store.FleetState) store.Pacing {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.words) == 0 {
		return store.Pacing{}
	}
	return p.pace
}

func (p *pupil) say(w store.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tells.Data = append(p.tells.Data, w.Data...)
	p.tells.Uncounted += w.Uncounted
	p.tells.Revoke = p.tells.Revoke || w.Revoke
}

func (p *pupil) knows() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.words)
}

// A class is replicas that learn together.
type class struct {
	t      *testing.T
	server *redistest.Server
	space  string
}

// A seat is one of them.
type seat struct {
	*pupil
	limiter *limiter
	queue   *shaping.Queue
}

func (c *class) seat(pace store.Pacing, limits ...throttle.Limit) *seat {
	c.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: c.server.Addr()})
	ours := New(rdb, c.space)
	const patience = 15 * time.Second // a busy machine loses no store
	ours.FirstDeadline, ours.Deadline, ours.MaxDeadline = patience, patience, patience
	l, err := ours.Limiter("lane", limits...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = ours.Close(); _ = rdb.Close() })
	pace.TTL = time.Minute
	s := &seat{&pupil{pace: pace}, l.(*limiter), nil}
	s.limiter.Replicate(s.pupil)
	s.queue = shaping.NewQueue(l)
	return s
}

func (s *seat) tell(text string) {
	s.say(store.Entry{Data: []byte(text)})
	s.limiter.Flush()
}

// call waits for a permit, and returns its ordinal.
func (s *seat) call(t *testing.T) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	turn := shaping.Turn{N: 1}
	if err := s.queue.WaitTurn(ctx, &turn); err != nil {
		t.Fatal(err)
	}
	return turn.Departure().Grant.Ref.Ordinal
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 5 s: %s", what)
		}
	}
}

func newClass(t *testing.T) *class {
	return &class{t, redistest.Start(t), fmt.Sprint("class-", t.Name())}
}

var counted = store.Pacing{Counted: true}

// Everybody hears all that was told, in one order, also who comes later.
func TestReplicasHearTheSame(t *testing.T) {
	c := newClass(t)
	a, b := c.seat(counted), c.seat(counted)
	for i := range 40 {
		[]*seat{a, b}[i%2].tell(fmt.Sprint("w", i))
	}
	a.tell("last of a")
	b.tell("last of b")
	eventually(t, "both know all", func() bool {
		a.limiter.Flush()
		b.limiter.Flush()
		return strings.Count(strings.Join(a.knows(), " "), "w") == 40 && slices.Equal(a.knows(), b.knows())
	})
	if !slices.Equal(a.knows(), b.knows()) {
		t.Errorf("one heard %v, the other %v", a.knows(), b.knows())
	}
	late := c.seat(counted)
	late.call(t)
	if got := late.knows(); !slices.Equal(got, a.knows()) {
		t.Errorf("who came later heard %v, not %v", got, a.knows())
	}
}

// A replica that has heard of no other is one: what it sees in flight stands for no
// other's calls.
func TestAReplicaIsAloneUntilItIsTold(t *testing.T) {
	c := newClass(t)
	for want := 1; want <= 2; want++ {
		s := c.seat(counted)
		s.tell("first")
		s.call(t)
		s.mu.Lock()
		first, last := s.sizes[0], s.last.Replicas
		s.mu.Unlock()
		if first != 1 || last > want {
			t.Errorf("replica %d was told of %d replicas, then of %d", want, first, last)
		}
	}
}

// What was told gives way to what somebody knew, so that it stays small.
func TestWhatWasToldIsCondensed(t *testing.T) {
	c := newClass(t)
	a, b := c.seat(counted), c.seat(counted)
	word := strings.Repeat("x", 800)
	for i := range 100 {
		a.tell(word)
		eventually(t, "it is heard", func() bool { return len(a.knows()) > i })
	}
	size, err := c.server.Do("HSTRLEN", script.LaneKey(c.space, "lane"), "entries")
	if err != nil || size.(int64) > 2*script.Condense {
		t.Errorf("Redis holds %v bytes of what was told (%v)", size, err)
	}
	if b.call(t); !slices.Equal(a.knows(), b.knows()) {
		t.Errorf("one heard %d words, the other %d", len(a.knows()), len(b.knows()))
	}
}

// Permits are counted over all replicas.
func TestOrdinalsAreTheFleets(t *testing.T) {
	c := newClass(t)
	a, b := c.seat(counted), c.seat(counted)
	a.say(store.Entry{Data: []byte("begin"), Uncounted: 7})
	a.limiter.Flush()
	eventually(t, "it is heard", func() bool { return len(a.knows()) == 1 })
	seen := make(map[int64]bool)
	for range 20 {
		for _, s := range []*seat{a, b} {
			n := s.call(t)
			if n <= 7 || n > 47+4 || seen[n] {
				t.Fatalf("a departure is number %d, after %v", n, seen)
			}
			seen[n] = true
		}
	}
}

// The pace of who has heard most holds for all.
func TestThePaceHoldsForAll(t *testing.T) {
	c := newClass(t)
	paced := store.Pacing{Counted: true, Interval: 10 * time.Millisecond}
	a, b := c.seat(paced), c.seat(counted) // b would let all go
	a.tell("slow")
	eventually(t, "it is heard", func() bool { return len(a.knows()) == 1 })
	b.pace = paced
	began := time.Now()
	var all sync.WaitGroup
	for _, s := range []*seat{a, b} {
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
	c := newClass(t)
	alone := store.Pacing{Counted: true, Probe: true}
	a, b := c.seat(alone), c.seat(alone)
	a.tell("refused")
	eventually(t, "it is heard", func() bool { return len(a.knows()) == 1 })
	var all sync.WaitGroup
	began := time.Now()
	for _, s := range []*seat{a, b} {
		all.Go(func() { s.call(t) })
	}
	all.Wait()
	if took := time.Since(began); took < 900*time.Millisecond || took > 4*time.Second {
		t.Errorf("the second of two that go alone went after %v", took)
	}
}

// After a flush, and after a restart with nothing kept, all is there again, and
// nobody who comes learns anew.
func TestAFlushLosesNothingThatWasLearned(t *testing.T) {
	c := newClass(t)
	a, b := c.seat(counted), c.seat(counted)
	for i := range 10 {
		a.tell(fmt.Sprint("w", i))
		eventually(t, "it is heard", func() bool { return len(a.knows()) > i })
	}
	b.call(t)
	last := max(a.call(t), b.call(t))
	if _, err := c.server.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	b.tell("after")
	eventually(t, "both know it", func() bool {
		a.limiter.Flush()
		b.limiter.Flush()
		return len(a.knows()) == 11 && slices.Equal(a.knows(), b.knows())
	})
	late := c.seat(counted)
	if n := late.call(t); n <= last {
		t.Errorf("after the flush a departure is number %d, before it was %d", n, last)
	}
	if got := late.knows(); !slices.Equal(got, a.knows()) {
		t.Errorf("who came after the flush heard %v, not %v", got, a.knows())
	}
}
