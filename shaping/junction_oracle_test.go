package shaping_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// tick is the grid on which permits fall due and things happen.
const tick = 10 * time.Millisecond

// A booth is a limiter simple enough to be judged: one departure is followed by a gap for
// each permit. It may be closed, so that only an event can help.
type booth struct {
	mu    sync.Mutex
	wake  func()
	gap   time.Duration
	state boothState
}

type boothState struct {
	free   throttle.Instant // when the next one may go
	paused throttle.Instant
	closed bool
	spent  int
}

func (s boothState) holds(now throttle.Instant) (until throttle.Instant) {
	if s.closed {
		return throttle.Never
	}
	return max(s.free, s.paused)
}

func (b *booth) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := b.state.holds(now); until > now {
		return throttle.Grant{At: until}, nil
	}
	n := r.Of(0)
	b.state.free = now.Add(time.Duration(n) * b.gap)
	b.state.spent += n
	return throttle.Grant{At: now}, nil
}

func (b *booth) Refund(now throttle.Instant, _ throttle.Grant, r throttle.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.free = b.state.free.Add(-time.Duration(r.Of(0)) * b.gap)
	b.state.spent -= r.Of(0)
}

func (b *booth) Forecast(now throttle.Instant, _ throttle.Request) throttle.Forecast {
	b.mu.Lock()
	defer b.mu.Unlock()
	return throttle.Forecast{At: max(b.state.free, b.state.paused), Reason: throttle.ReasonRate}
}

func (b *booth) Settle(throttle.Instant, throttle.Grant, throttle.Request, throttle.Request) {}

func (b *booth) Reconcile(_ throttle.Instant, f throttle.Fact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.paused = max(b.state.paused, f.Until)
}

func (b *booth) Tune(throttle.Instant, ...throttle.Limit) error { return nil }
func (b *booth) Tolerance() time.Duration                       { return time.Hour }

func (b *booth) State(throttle.Instant) throttle.State {
	limit := throttle.LeakyBucket(1, b.gap)
	return throttle.State{Limits: []throttle.LimitState{{Limit: limit}}}
}

func (b *booth) Notify(wake func())                                      { b.wake = wake }
func (b *booth) Fetch(throttle.Instant, int, iter.Seq[throttle.Request]) {}
func (b *booth) Close() error                                            { return nil }

// now returns the state as it is.
func (b *booth) now() boothState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// A passenger is a caller of a history.
type passenger struct {
	id      int
	way     int   // its queue
	each    []int // permits of each booth of its way
	class   shaping.Priority
	comes   int // tick
	gives   int // tick at which it gives up; below zero: never
	longest time.Duration
	back    bool // it gives its permits back when it has them
	moves   int  // queue in which it waits anew instead of its first departure; below zero: it does not
	moved   time.Duration
	came    time.Duration
	left    time.Duration
	err     error
	state   int // waiting, departed, gone, returned
	cancel  context.CancelFunc
	turn    shaping.Turn
}

const (
	absent = iota
	waits
	went
	gone
)

// A keeping is for how many ticks the turn at a booth was kept for one caller.
type keeping struct {
	of    uint64 // ID; zero: it is not kept
	ticks int
}

// A history is a random one over some booths and queues.
type history struct {
	seed       uint64
	share      float64 // of the less urgent classes; below zero: the order of classes is strict
	booths     []*booth
	junction   shaping.Junction
	parts      map[int]bool      // booths that are parts
	own        []*shaping.Queue  // of each booth
	rosters    []*shaping.Roster // of each booth; nil: nobody has needed another one with it yet
	ways       [][]int           // the booths of each queue
	queues     []*shaping.Queue  // nil: nobody has come that way yet
	passengers []*passenger

	kept []keeping

	mu    sync.Mutex
	start time.Time
	held  []bool // which booths held callers just before the tick
}

func newHistory(seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 1))
	h := &history{seed: seed, share: []float64{-1, -1, 0.05, 0.3}[seed%4], start: time.Now(), parts: make(map[int]bool)}
	parts := seed%3 == 0
	most := 4
	if parts {
		most = 7
	}
	for i := range 2 + r.IntN(most-1) {
		b := &booth{gap: tick * time.Duration(1+r.IntN(4))}
		h.booths, h.own = append(h.booths, b), append(h.own, shaping.NewQueue(b))
		h.parts[i] = parts && i%2 == 1
		h.own[i].LowPriorityShare = h.share
	}
	h.kept, h.rosters = make([]keeping, len(h.booths)), make([]*shaping.Roster, len(h.booths))
	for range 2 + r.IntN(4) {
		h.ways = append(h.ways, r.Perm(len(h.booths))[:1+r.IntN(len(h.booths))])
	}
	h.queues = make([]*shaping.Queue, len(h.ways))
	for id := range 4 + r.IntN(14) {
		p := &passenger{id: id, way: r.IntN(len(h.ways)), comes: r.IntN(20), gives: -1, moves: -1}
		for range h.ways[p.way] {
			p.each = append(p.each, 1+r.IntN(3))
		}
		p.class = priorities[r.IntN(len(priorities))]
		if r.IntN(4) == 0 {
			p.gives = p.comes + r.IntN(20)
		}
		if r.IntN(5) == 0 {
			p.longest = time.Duration(r.IntN(20)) * tick
		}
		p.back = r.IntN(8) == 0
		if parts && id%3 == 0 { // as a call whose bucket was named while it waited
			p.moves = id / 3 % len(h.ways)
		}
		h.passengers = append(h.passengers, p)
	}
	return h
}

// queue returns the queue of a way: a booth's own, or one that is made with the rosters that it
// needs when the first passenger comes.
func (h *history) queue(way int) *shaping.Queue {
	h.mu.Lock()
	defer h.mu.Unlock()
	booths := h.ways[way]
	switch {
	case len(booths) == 1:
		return h.own[booths[0]]
	case h.queues[way] != nil:
		return h.queues[way]
	}
	rosters := make([]*shaping.Roster, len(booths))
	for i, b := range booths {
		if h.rosters[b] == nil {
			made := h.junction.NewRoster
			if h.parts[b] {
				made = h.junction.NewPart
			}
			h.rosters[b] = made(fmt.Sprint("booth ", b), h.own[b])
		}
		rosters[i] = h.rosters[b]
	}
	h.queues[way] = h.junction.NewQueue(rosters...)
	h.queues[way].LowPriorityShare = h.share
	return h.queues[way]
}

// come lets a passenger come.
func (h *history) come(p *passenger, wg *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(shaping.WithPriority(context.Background(), p.class))
	p.cancel, p.state, p.came = cancel, waits, time.Since(h.start)
	p.turn = shaping.Turn{N: 1, Each: p.each, MaxWait: p.longest, ID: uint64(p.id + 1)}
	wg.Go(func() {
		q := h.queue(p.way)
		err := q.WaitTurn(ctx, &p.turn)
		if p.moves >= 0 && err == nil {
			q.Return(&p.turn)
			h.move(p)
			q = h.queue(p.way)
			err = q.WaitTurn(ctx, &p.turn)
		}
		h.mu.Lock()
		p.err, p.left, p.state = err, time.Since(h.start), went
		if err != nil {
			p.state = gone
		}
		back := p.back && err == nil
		if back {
			p.state = gone
		}
		h.mu.Unlock()
		if back {
			q.Return(&p.turn)
		}
	})
}

// move makes another queue that of a passenger. It needs one permit of each booth there.
func (h *history) move(p *passenger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.way, p.moved = p.moves, time.Since(h.start)
	p.each = slices.Repeat([]int{1}, len(h.ways[p.way]))
	p.turn.Each = p.each
}

// play lives the history, and returns what was wrong.
func (h *history) play() (wrong string) {
	var wg sync.WaitGroup
	r := rand.New(rand.NewPCG(h.seed, 2))
	defer func() {
		for _, p := range h.passengers {
			if p.cancel != nil {
				p.cancel()
			}
		}
		for _, b := range h.booths {
			b.mu.Lock()
			b.state.closed = false
			b.mu.Unlock()
			b.wake()
		}
		wg.Wait()
		for _, q := range slices.Concat(h.queues, h.own) {
			if q != nil {
				q.Close()
			}
		}
	}()
	const long = 250 // ticks, enough for all to go
	for now := range long {
		for _, p := range h.passengers {
			if p.comes == now {
				h.come(p, &wg)
				synctest.Wait()
			}
			if p.gives == now && p.cancel != nil {
				p.cancel()
			}
		}
		synctest.Wait()
		if wrong = cmp.Or(h.judge(), h.keeping()); wrong != "" {
			return fmt.Sprintf("tick %d: %s", now, wrong)
		}
		if now < 40 {
			h.happen(r)
		} else {
			h.open()
		}
		synctest.Wait()
		time.Sleep(tick - time.Millisecond)
		synctest.Wait()
		if wrong = h.judge(); wrong != "" {
			return fmt.Sprintf("before tick %d: %s", now+1, wrong)
		}
		waiting := h.waiting()
		h.held = h.held[:0]
		for _, b := range h.booths {
			h.held = append(h.held, b.now().holds(h.own[0].Now()) > h.own[0].Now())
		}
		time.Sleep(time.Millisecond) // permits fall due
		synctest.Wait()
		if wrong = h.order(waiting); wrong != "" && h.share < 0 {
			return fmt.Sprintf("tick %d: %s", now+1, wrong)
		}
	}
	return h.end()
}

// happen does one random thing.
func (h *history) happen(r *rand.Rand) {
	b := r.IntN(len(h.booths))
	booth := h.booths[b]
	switch r.IntN(8) {
	case 0:
		h.own[b].Reconcile(throttle.Fact{Until: h.own[0].Now().Add(tick * time.Duration(r.IntN(8)))})
	case 1:
		booth.mu.Lock()
		booth.state.closed = true
		booth.mu.Unlock()
	case 2:
		h.open()
	case 3:
		booth.mu.Lock()
		booth.gap = tick * time.Duration(1+r.IntN(4))
		booth.state.free = min(booth.state.free, h.own[0].Now().Add(booth.gap))
		booth.mu.Unlock()
		h.own[b].Tune()
	}
}

// open opens all booths.
func (h *history) open() {
	for _, b := range h.booths {
		b.mu.Lock()
		was := b.state.closed
		b.state.closed = false
		b.mu.Unlock()
		if was {
			b.wake()
		}
	}
}

// waiting returns who waits.
func (h *history) waiting() (all []*passenger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.passengers {
		if p.state == waits {
			all = append(all, p)
		}
	}
	return all
}

// first returns the first one of each queue.
func (h *history) first(of []*passenger) (first []*passenger) {
	first = make([]*passenger, len(h.queues))
	for _, p := range of {
		if f := first[p.way]; f == nil || p.class > f.class || p.class == f.class && p.before(f) {
			first[p.way] = p
		}
	}
	return first
}

func (p *passenger) before(o *passenger) bool {
	return p.came < o.came || p.came == o.came && p.id < o.id
}

// judge checks what must hold whenever nothing moves: what was spent at each booth is
// what those cost who departed, and no one waits who could go.
func (h *history) judge() string {
	now, waiting := h.own[0].Now(), h.waiting()
	for b, booth := range h.booths {
		spent := 0
		for _, p := range h.passengers {
			if p.state == went {
				spent += h.cost(p, b)
			}
		}
		if got := booth.now().spent; got != spent {
			return fmt.Sprintf("booth %d has spent %d permits, and %d departed with them", b, got, spent)
		}
	}
	first := h.first(waiting)
	for _, p := range first {
		if p != nil && !h.excused(p, now) {
			return fmt.Sprintf("passenger %d waits, and could go", p.id)
		}
	}
	return ""
}

// keeping checks that no turn is kept for longer than the dearest permits take.
func (h *history) keeping() string {
	for b, r := range h.rosters {
		k := &h.kept[b]
		if r == nil || r.Kept() == 0 || r.Kept() != k.of {
			*k = keeping{}
		}
		if r != nil {
			k.of = r.Kept()
		}
		if k.ticks++; k.of != 0 && k.ticks > 3*4+1 {
			return fmt.Sprintf("a turn at booth %d is kept for %d ticks", b, k.ticks)
		}
	}
	return ""
}

// excused reports whether something holds p: a booth, or another one whose turn is kept
// there.
func (h *history) excused(p *passenger, now throttle.Instant) bool {
	for _, b := range h.ways[p.way] {
		if h.booths[b].now().holds(now) > now || h.rosters[b] != nil && h.rosters[b].Kept() != 0 {
			return true
		}
	}
	return false
}

// cost returns what p costs at a booth; zero: it does not need the booth.
func (h *history) cost(p *passenger, b int) int {
	if i := slices.Index(h.ways[p.way], b); i >= 0 {
		return p.each[i]
	}
	return 0
}

// order checks that no one who departed just now has overtaken a more urgent one, whom
// only what it spent kept from going. Permits that come back in the same instant let both go
// from that instant on.
func (h *history) order(waited []*passenger) string {
	now := h.own[0].Now()
	for _, p := range waited {
		if p.back && p.state == gone && p.err == nil && p.left == time.Since(h.start) || p.moved == time.Since(h.start) {
			return ""
		}
	}
	first := h.first(h.waiting())
	for _, p := range waited {
		if p.state != went || p.left < time.Since(h.start) {
			continue
		}
		for _, o := range first {
			if o == nil || !slices.Contains(waited, o) {
				continue
			}
			if o.way == p.way && o.class == p.class && o.came < p.came {
				return fmt.Sprintf("passenger %d overtook %d", p.id, o.id)
			}
			if o.class <= p.class {
				continue
			}
			could := slices.ContainsFunc(h.ways[o.way], func(b int) bool { return h.cost(p, b) > 0 })
			for _, b := range h.ways[o.way] {
				could = could && !h.returned(b)
				s := h.booths[b].now()
				if n := h.cost(p, b); n > 0 {
					s.free = s.free.Add(-time.Duration(n) * h.booths[b].gap)
				} else if h.held[b] { // both could go from the same instant on
					could = false
				}
				could = could && s.holds(now) <= now
			}
			if could {
				return fmt.Sprintf("passenger %d of class %d went before %d of class %d", p.id, p.class, o.id, o.class)
			}
		}
	}
	return ""
}

// returned reports whether permits of a booth came back just now. Until then they held
// others.
func (h *history) returned(b int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.passengers, func(p *passenger) bool {
		return p.back && p.state == gone && p.err == nil && p.left == time.Since(h.start) && h.cost(p, b) > 0
	})
}

// end checks that everybody has left, and that nobody stands in a roster.
func (h *history) end() string {
	if left := h.waiting(); len(left) > 0 {
		return fmt.Sprintf("passenger %d never came out", left[0].id)
	}
	for i, q := range h.own {
		if n := q.Waiting(); n != 0 {
			return fmt.Sprintf("booth %d counts %d who wait", i, n)
		}
	}
	return ""
}

// TestNoCallerIsHeldForNothing lives random histories of callers who need several
// limiters. WEIR_SEED begins with another seed.
func TestNoCallerIsHeldForNothing(t *testing.T) {
	histories := uint64(10_000)
	if testing.Short() {
		histories = 200
	}
	first, _ := strconv.ParseUint(os.Getenv("WEIR_SEED"), 10, 64) // zero if there is none
	for seed := first; seed < first+histories; seed++ {
		wrong := ""
		synctest.Test(t, func(*testing.T) { wrong = newHistory(seed).play() })
		if wrong != "" {
			t.Fatalf("history %d: %s", seed, wrong)
		}
	}
}

// The callers of this history would displace each other in a circle, in which no time passes.
func TestQueuesThatWakeEachOtherSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if wrong := newHistory(1_000_775).play(); wrong != "" {
			t.Error(wrong)
		}
	})
}
