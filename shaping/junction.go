package shaping

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// MaxRosters is the most rosters of one queue. Vendors count a call in a few places: for
// its customer, its route, its account, and for parts of those.
const MaxRosters = 16

// A Junction joins limiters that one caller needs together, such as that of a customer
// and that of the account which all customers share. Each limiter has a [Queue] for callers
// who need it alone, and a [Roster]. Each set of them has a queue of its own, made with NewQueue.
// The zero value is ready to use. It is safe for concurrent use, and must not be copied.
//
// A caller departs when all limiters of its queue allow it. Until then nothing of any of
// them is spent. The first callers of all queues that wait for one limiter share it as
// the callers of one queue do: by class, by the tenants' weights, and queue by queue if
// they name no tenant. Queues of the same rosters count as one.
//
// # Shares
//
// The first caller of a queue waits in one roster at a time, and delays nobody at the other
// limiters. It comes to the next one with credit for the time for which it has waited.
//
// Permits of two busy limiters need not fall due in the same instant. A caller that needs
// both would lose its turn at one while the other holds it, again and again. So it gives up
// each turn once. The next time it keeps its turn at the slower limiter until the faster one
// lets it go, but for no longer than its own permits take there. At 10/s and 2/s:
//
//	0 ms   its turn at 2/s, but 10/s holds it for 40 ms: it gives the turn up
//	40 ms  its turn at 10/s, but 2/s, which has served another, holds it: it gives that up, too
//	500 ms its turn at 2/s, which it keeps for 40 ms: then it departs
//
// Nobody knows when a call in flight ends. If such calls fill both limiters, the caller waits for the first
// by name. A process that shares the limiters keeps its place there while the caller then waits for the other
// one. From callers of other queues the caller keeps a free place at one of them for the mean time between
// departures there, at most.
//
// # No deadlock
//
// One lock guards all rosters. A queue takes it with its own lock held, and nobody takes
// the lock of a queue while holding it: queues are woken on another goroutine. The first one
// of a roster waits for that limiter, or keeps its turn until a known instant, never for
// another caller. So some caller can always go, or only time can help.
//
// # No livelock
//
// A caller that comes or leaves may wake the first one of a roster, which then moves to another
// roster. If each roster has one fixed order, such a cascade ends. Assume that some callers
// moved on without end, and look at the first in order of those who come to one of these
// rosters. Nobody there is before it, so it has come because that limiter holds it. It is
// asked again only after someone has been before it, so it does not move.
//
// The share of the less urgent classes is no fixed order: an early caller of high cost keeps
// the share from a later one of low cost, until it leaves. So callers could displace each
// other in a circle. A roster that has seen the first caller of each queue many times in one
// cascade gets a fixed order until its next departure. The least urgent class goes first,
// which pays for it with its share, and no turns are kept.
type Junction struct {
	numbered atomic.Int64 // numbers given to places

	mu       sync.Mutex
	made     uint64   // rosters
	waking   []*Queue // to be woken
	running  bool     // the goroutine that wakes them
	cascades uint64   // how often nobody was left to be woken
}

// mostMoves is how often each first caller enters a roster in one cascade, without a departure
// there, before the roster's order is fixed. In cascades that end by themselves it was six times
// at most in 10,000 random histories.
const mostMoves = 16

// A Roster is the line in front of one limiter of a [Junction]. It holds the first caller
// of each queue that waits for this limiter. Make it with [Junction.NewRoster]. What is asked of
// the limiter's own queue, such as its State, is of all of these.
type Roster struct {
	name     string
	number   uint64 // among all that the junction has made
	limiter  throttle.Limiter
	vetoes   store.Vetoer // the limiter, if it is one; nil: it is not
	junction *Junction
	part     bool // it holds only some of the callers of the others; false: see Junction.NewPart

	// Under the junction's lock.
	line     line
	heads    map[*waiter]*joint // whose first caller each of the line is
	queues   map[*Queue]bool    // all that need the limiter
	asked    *waiter            // the first of the line, who knows it or will be woken; nil: no one
	moved    throttle.Instant   // until when the last first one held the others
	rates    []float64          // permits per second of each limit; nil: not read yet
	sharers  int                // processes that share the limiter; zero: not known
	alone    bool               // no store shares it; false: that is not known, or one does
	guests   []*joint           // whose first caller needs a permit soon, and waits elsewhere; of a remote limiter
	expected int                // first callers who wait for calls of a later roster, and keep a place here
	waiting  atomic.Int64       // callers in the queues whose first one is in the line; read without the lock
	bytes    int64              // that those hold
	shown    int                // of those, the callers that the limiter sees
	full     bool               // calls in flight have held somebody since the last departure
	pace     time.Duration      // mean time between departures while calls in flight hold others; zero: not known
	last     throttle.Instant   // last departure
	entered  int                // first callers who came since the last departure, in one cascade
	cascade  uint64             // the one in which they came
	fixed    bool               // the order does not depend on who is in line; false: it may
	fetching bool               // the limiter, a remote one, has seen somebody in line
	changed  bool               // it has not seen the line as it is now
	stale    uint64             // permits of it that were void when their caller woke up
}

// NewRoster returns a roster in front of the limiter of a queue, whose callers keep their places.
// The name stands in errors and in [Wait]. It panics if the queue has rosters.
func (n *Junction) NewRoster(name string, q *Queue) *Roster {
	return n.open(&Roster{name: name}, q)
}

// NewPart returns a roster in front of a limiter that holds only some of the callers of the
// other rosters, such as those of one route. Queues that differ in parts alone take turns as
// one queue, in which callers without a tenant go in the order of their arrival.
func (n *Junction) NewPart(name string, q *Queue) *Roster {
	return n.open(&Roster{name: name, part: true}, q)
}

// open opens a roster to the callers of a queue, who may be in line, and to those of others.
func (n *Junction) open(r *Roster, q *Queue) *Roster {
	q.lock()
	defer q.unlock()
	if q.joint() != nil {
		panic("shaping: NewRoster " + strconv.Quote(r.name) + " of a queue that has rosters")
	}
	r.limiter, r.junction, r.stale, r.fetching = q.limiter, n, q.stale, q.fetching
	r.heads, r.queues = make(map[*waiter]*joint), make(map[*Queue]bool)
	r.vetoes, _ = q.limiter.(store.Vetoer)
	n.numbered.Add(q.numbered) // newcomers have greater numbers than its callers
	q.remote.Store(&remote{Remote: n.join(q, r), line: q.line.requests()})
	q.advance(q.Now())
	return r
}

// NewQueue returns a queue whose callers need permits of all the rosters. The costs in
// [Turn].Each are those of the first roster's limits, then those of the second's, and so
// on, as the limits are now. Close the queue when it is needed no longer. It panics if
// there are no rosters, more than [MaxRosters], one twice, or one of another junction.
func (n *Junction) NewQueue(rosters ...*Roster) *Queue {
	if len(rosters) == 0 || len(rosters) > MaxRosters {
		panic("shaping: NewQueue of " + strconv.Itoa(len(rosters)) + " rosters, want 1 to " + strconv.Itoa(MaxRosters))
	}
	q := newQueue(nil)
	n.join(q, rosters...)
	q.readTolerance()
	return q
}

// join lets rosters decide on the callers of a queue.
func (n *Junction) join(q *Queue, rosters ...*Roster) *joint {
	j := &joint{junction: n, queue: q, rosters: rosters, places: make([]int, len(rosters)+1), since: make([]float64, len(rosters)), at: nowhere}
	if q.limiter == nil { // it has no other
		q.limiter = j
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, r := range rosters {
		if r.number == 0 {
			n.made++
			r.number = n.made
		}
		if !r.part {
			j.widest = i
			j.name += "\x00" + strconv.FormatUint(r.number, 36)
		}
		if r.junction != n {
			panic("shaping: NewQueue with roster " + strconv.Quote(r.name) + " of another junction")
		}
		if slices.Contains(rosters[:i], r) {
			panic("shaping: NewQueue with roster " + strconv.Quote(r.name) + " twice")
		}
		j.places[i+1] = j.places[i] + len(r.limiter.State(q.Now()).Limits)
		r.queues[q] = true
	}
	return j
}

// notified asks the limiter again, which asks for that itself.
func (q *Queue) notified() {
	if r := q.roster(); r != nil {
		r.wake()
		return
	}
	q.wake()
}

// wake asks the limiter again for the first one in line, because an earlier answer may no
// longer hold.
func (r *Roster) wake() {
	r.junction.mu.Lock()
	r.count()
	r.asked = nil
	if r.call(); r.sparse() && r.first() == nil && len(r.guests) > 0 { // they wait elsewhere
		r.fetch(r.guests[0].queue.Now(), r.sees(), r.requests())
	}
	r.junction.unlock()
}

// peers returns the queues whose callers need the limiter of q.
func (q *Queue) peers() []*Queue {
	r := q.roster()
	if r == nil {
		return []*Queue{q}
	}
	r.junction.mu.Lock()
	defer r.junction.mu.Unlock()
	r.rates = nil
	return slices.Collect(maps.Keys(r.queues))
}

// first returns the first one in line.
func (r *Roster) first() *waiter {
	if n := len(r.line.classes); n > 1 && r.fixed && r.line.share > 0 {
		return r.line.classes[n-1].first()
	}
	return r.line.first()
}

// call notes that the first one in line must be asked, unless that is so already.
func (r *Roster) call() {
	first := r.first()
	if first == r.asked {
		return
	}
	if r.asked = first; first != nil {
		r.junction.waking = append(r.junction.waking, r.heads[first].queue)
	}
}

// enter puts the first caller of a queue in line.
func (r *Roster) enter(seat *waiter, of *joint, u urgency) {
	if r.cascade != r.junction.cascades {
		r.cascade, r.entered = r.junction.cascades, 0
	}
	r.entered++
	r.fixed = r.fixed || r.entered > mostMoves*len(r.queues)
	r.line.share = of.queue.lowPriorityShare()
	r.line.enter(seat, u)
	r.heads[seat] = of
}

// leave takes one out of line. If it departs, its permit is dated charged.
func (r *Roster) leave(seat *waiter, departs bool, charged throttle.Instant) {
	first := seat == r.first()
	if first {
		r.moved = charged
	}
	if departs {
		if first && seat != r.line.first() {
			r.line.owe(seat)
		}
		r.line.depart(seat)
		r.entered, r.fixed = 0, false
	} else {
		r.line.leave(seat)
	}
	delete(r.heads, seat)
	if r.asked == seat { // the same seat may come back behind others
		r.asked = nil
	}
}

// measure notes a departure. A long gap, such as a pause, counts as twice the mean at most.
func (r *Roster) measure(now throttle.Instant) {
	if r.full {
		r.pace += (min(now.Sub(r.last), 2*r.pace+moment) - r.pace) / 4
	}
	r.full, r.last = false, now
}

// unlock unlocks the rosters, and wakes the queues that must ask again.
func (n *Junction) unlock() {
	start := len(n.waking) > 0 && !n.running
	n.running = n.running || start
	n.mu.Unlock()
	if start { // a caller holds the lock of its queue, and must not take another's
		go n.wake()
	}
}

// wake wakes the queues that are to be woken, one cascade.
func (n *Junction) wake() {
	for {
		n.mu.Lock()
		if len(n.waking) == 0 {
			n.cascades++
			n.running, n.waking = false, nil
			n.mu.Unlock()
			return
		}
		q := n.waking[0]
		n.waking = n.waking[1:]
		n.mu.Unlock()
		q.wake()
	}
}
