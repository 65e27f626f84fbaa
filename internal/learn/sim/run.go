package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

type kind uint8

const (
	evArrive kind = iota
	evDone
	evLand
	evFact
	evTimer
	evChange
	evStranger
	evDemand
)

type event struct {
	at   int64
	seq  uint64
	kind kind
	id   int32
}

type call struct {
	fact    learn.Fact
	told    time.Duration
	line    int64 // when it first stood in line
	refused int
}

// sample is how many calls leave for each of which a lane takes note before it has
// learned anything.
const sample = 8

type world struct {
	Scenario
	rng       *rand.Rand
	now       int64
	start     int64
	events    []event
	seq       uint64
	door      *door
	calls     []call
	free      []int32
	line      []waiting // oldest at head
	head      int
	flying    int
	granted   int64
	limiter   throttle.Limiter
	state     learn.State
	plan      learn.Plan
	timerAt   int64
	told      int64 // nothing may leave before it
	heardAt   int64 // when the first refusal was heard
	unans     map[int64]struct{}
	asked     int              // refused in a row, each after the one before was heard
	refusedAt throttle.Instant // when the last of them was heard
	strange   float64
	burst     int
	lats      []float64
	res       Result
	served    int
	ended     bool
	blocked   bool  // by the plan's hold or bound, not by the limiter
	opened    int64 // when that ended last: late permits are credited from then on
}

type waiting struct {
	since   int64
	line    int64
	refused int
}

// Run plays the scenario with the seed.
func Run(s Scenario, seed uint64) Result {
	w := &world{Scenario: s, rng: rand.New(rand.NewPCG(seed, 0x57656972))}
	w.start = 1_700_000_000_000_000_000 + w.rng.Int64N(int64(time.Hour))
	w.now = w.start
	w.door = newDoor(s.Vendor, w.now)
	w.limiter, _ = throttle.Local{}.Limiter("", s.Configured...)
	w.timerAt = math.MaxInt64
	w.told = math.MinInt64
	w.res.BinLen = 100 * time.Millisecond
	w.unans = map[int64]struct{}{}
	w.state = learn.New(s.setting())
	w.replan()
	for i := range s.Changes {
		w.push(w.start+int64(s.Changes[i].At), evChange, int32(i))
	}
	for range s.Workers {
		w.line = append(w.line, waiting{since: w.now, line: w.now})
	}
	if s.Open > 0 {
		w.push(w.now+w.gap(s.Open), evDemand, 0)
	}
	w.pump()
	for len(w.events) > 0 && !w.ended {
		e := w.pop()
		if e.at > w.start+int64(s.Until) {
			break
		}
		w.now = e.at
		w.handle(e)
	}
	w.res.State = w.state
	if w.res.Wall == 0 {
		w.res.Wall = s.Until
	}
	if len(w.lats) > 0 {
		slices.Sort(w.lats)
		w.res.P99 = time.Duration(w.lats[len(w.lats)*99/100])
	}
	return w.res
}

func (w *world) gap(rate float64) int64 {
	return int64(w.rng.ExpFloat64() / rate * 1e9)
}

func (w *world) way() int64 {
	return int64(float64(w.Way) * math.Exp(w.Jitter*w.rng.NormFloat64()))
}

func (w *world) handle(e event) {
	switch e.kind {
	case evArrive:
		w.arrive(e.id)
	case evDone:
		w.door.done()
	case evLand:
		w.land(e.id)
	case evFact:
		w.learn(&w.calls[e.id].fact)
		w.free = append(w.free, e.id)
		w.pump()
	case evTimer:
		if e.at == w.timerAt {
			w.timerAt = math.MaxInt64
			w.pump()
		}
	case evChange:
		w.change(w.Changes[e.id], e.id)
	case evStranger:
		if w.strange > 0 && int(e.id) == w.burst {
			for range max(1, w.burst) {
				if w.door.arrive(w.now) {
					w.push(w.now+int64(w.Service), evDone, 0)
					w.bin().Strange++
					if w.now-w.start >= int64(w.From) {
						w.res.Strange++
					}
				}
			}
			w.push(w.now+w.gap(w.strange/float64(max(1, w.burst))), evStranger, e.id)
		}
	case evDemand:
		w.line = append(w.line, waiting{since: w.now, line: w.now})
		if w.Later > 0 && w.now-w.start >= int64(w.LaterAt) {
			w.Open = w.Later
		}
		w.push(w.now+w.gap(w.Open), evDemand, 0)
		w.pump()
	}
}

func (w *world) change(c Change, _ int32) {
	if c.Vendor != nil {
		w.door.become(*c.Vendor, w.now)
	}
	if c.Style != nil {
		w.Style = *c.Style
	}
	begins := w.strange == 0 || w.burst != c.Burst
	w.strange, w.burst = c.Strangers, c.Burst
	if begins && w.strange > 0 {
		w.push(w.now+w.gap(w.strange/float64(max(1, w.burst))), evStranger, int32(w.burst))
	}
}

// arrive lets the vendor decide, and sends the answer.
func (w *world) arrive(id int32) {
	c := &w.calls[id]
	ok := w.door.arrive(w.now)
	c.fact.Refused = !ok
	c.told, c.fact.Quotas = w.door.tell(w.Style, w.now, ok, c.fact.Quotas)
	if w.Style == Garbage {
		w.garble(c)
	}
	served := w.now
	if ok {
		d := float64(w.Service)
		if w.Exponential {
			d *= w.rng.ExpFloat64()
		}
		served += int64(d)
		w.push(served, evDone, id)
	}
	w.push(served+w.way(), evLand, id)
}

func (w *world) garble(c *call) {
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1, 1e300, 4e18, 5, 2.5}
	pick := func() float64 { return odd[w.rng.IntN(len(odd))] }
	c.fact.Quotas = c.fact.Quotas[:0]
	for range w.rng.IntN(6) {
		c.fact.Quotas = append(c.fact.Quotas, learn.Quota{
			Name: ruleNames[w.rng.IntN(4)], Limit: pick(), HasLimit: w.rng.IntN(2) == 0,
			Remaining: pick(), HasRemaining: w.rng.IntN(2) == 0,
			Reset: time.Duration(int64(w.rng.Uint64())), HasReset: w.rng.IntN(2) == 0,
			Window: time.Duration(int64(w.rng.Uint64())), HasWindow: w.rng.IntN(2) == 0,
		})
	}
}

// land counts the answer, sends a refused call to the head of the line and the
// next one of a served worker to its end.
func (w *world) land(id int32) {
	c := &w.calls[id]
	f := &c.fact
	f.Landed = throttle.Instant(w.now)
	f.Waited = f.Waited || len(w.line) > w.head
	if c.told > 0 && f.Refused {
		f.Until = throttle.Instant(w.now + int64(c.told))
		if w.Late == 0 {
			w.told = max(w.told, int64(f.Until))
		}
	}
	w.count(c)
	w.probe(f)
	if f.Refused {
		w.rejoin(waiting{since: w.now, line: c.line, refused: c.refused + 1})
	} else if w.Workers > 0 {
		w.line = append(w.line, waiting{since: w.now, line: w.now})
	}
	if w.Late > 0 {
		w.push(w.now+w.late(), evFact, id)
	} else {
		w.learn(f)
		w.free = append(w.free, id)
	}
	w.pump()
}

// probe counts the refusals of calls that left after the one before was heard, in a
// row.
func (w *world) probe(f *learn.Fact) {
	switch {
	case !f.Refused:
		w.asked = 0
	case f.Departed >= w.refusedAt:
		w.asked++
		w.refusedAt = f.Landed
	}
	if w.now-w.start >= int64(w.From) {
		w.res.Probes = max(w.res.Probes, w.asked-1)
	}
}

func (w *world) late() int64 { return int64(float64(w.Late) * (0.5 + w.rng.Float64())) }

func (w *world) rejoin(p waiting) {
	if w.head > 0 {
		w.head--
		w.line[w.head] = p
		return
	}
	w.line = slices.Insert(w.line, 0, p)
}

func (w *world) bin() *Bin {
	i := int((w.now - w.start) / int64(w.res.BinLen))
	for len(w.res.Bins) <= i {
		w.res.Bins = append(w.res.Bins, Bin{})
	}
	return &w.res.Bins[i]
}

func (w *world) count(c *call) {
	measured := w.now-w.start >= int64(w.From)
	if c.fact.Refused {
		w.bin().Refused++
		w.res.All++
		if w.heardAt == 0 {
			w.heardAt = w.now
		}
		if int64(c.fact.Departed) <= w.heardAt {
			w.res.First++
		}
		w.res.Worst = max(w.res.Worst, c.refused+1)
		if measured {
			w.res.Refused++
		}
		return
	}
	w.bin().Served++
	w.served++
	if w.heardAt == 0 {
		w.res.Accepted++
	}
	if measured {
		w.res.Served++
		w.lats = append(w.lats, float64(w.now-c.line))
	}
	if w.Calls > 0 && w.served == w.Calls {
		w.res.Wall, w.ended = time.Duration(w.now-w.start), true
	}
}

// learn observes a fact. The call is in flight until then: what is bounded is
// what nobody has heard of yet.
func (w *world) learn(f *learn.Fact) {
	w.flying--
	delete(w.unans, f.Ordinal)
	if w.NoLearner || w.Knows == nil && w.state.Quiet(f) && f.Ordinal%sample != 0 {
		return
	}
	f.Granted = w.granted
	if f.Until > 0 {
		w.limiter.Reconcile(throttle.Instant(w.now), throttle.Fact{Until: f.Until})
	}
	if w.Knows != nil {
		return
	}
	w.state = learn.Observe(w.state, f, throttle.Instant(w.now))
	w.replan()
	if w.Late > 0 && f.Until > 0 {
		w.told = max(w.told, int64(f.Until))
	}
	if Trace != nil {
		Trace(w, f)
	}
}

// Trace is called with each fact that was learned; nil: nobody is.
var Trace func(w *world, f *learn.Fact)

func (w *world) replan() {
	p := learn.Plan{}
	switch {
	case w.Knows != nil:
		p = *w.Knows
	case !w.NoLearner:
		p = w.state.Plan(throttle.Instant(w.now), w.granted)
	}
	if p.Changed(w.plan) {
		limits := append(slices.Clone(w.Configured), p.Limits()...)
		tuner := w.limiter.(interface {
			Tune(throttle.Instant, ...throttle.Limit) error
		})
		if err := tuner.Tune(throttle.Instant(w.now), limits...); err != nil {
			panic(err)
		}
		w.res.Tunes++
		w.plan = p
		return
	}
	rate := w.plan.Rate
	w.plan = p
	w.plan.Rate = rate
}

// pump lets go whom the plan and the limiter let go.
func (w *world) pump() {
	for w.head < len(w.line) {
		// What is held by time passes by itself: the plan is asked anew.
		at := int64(math.MaxInt64)
		p := &w.plan
		switch {
		case int64(p.Hold) > w.now:
			at, w.blocked = int64(p.Hold), true
		case p.Most > 0 && w.flights() >= p.Most:
			w.blocked = true
			w.arm(at, false)
			return
		default:
			if w.blocked {
				w.blocked, w.opened = false, w.now
			}
			since := max(w.line[w.head].since, w.opened)
			got, err := w.limiter.Take(throttle.Instant(w.now), throttle.Request{N: 1, Since: throttle.Instant(since)})
			if err != nil {
				panic(err)
			}
			if int64(got) <= w.now {
				w.depart()
				continue
			}
			at = int64(got)
		}
		w.arm(at, true)
		return
	}
	w.line, w.head = w.line[:0], 0
}

// flights counts the calls in flight that the plan's bound concerns.
func (w *world) flights() int {
	if w.plan.Since == 0 {
		return w.flying
	}
	n := 0
	for o := range w.unans {
		if o > w.plan.Since {
			n++
		}
	}
	return n
}

// arm sets the timer; real ones wake up to a millisecond late.
func (w *world) arm(at int64, set bool) {
	if !set {
		w.timerAt = math.MaxInt64
		return
	}
	at += w.rng.Int64N(int64(time.Millisecond))
	w.timerAt = at
	w.push(at, evTimer, 0)
}

func (w *world) depart() {
	p := w.line[w.head]
	w.head++
	if w.head > 4096 && w.head*2 > len(w.line) {
		w.line = append(w.line[:0], w.line[w.head:]...)
		w.head = 0
	}
	if w.now < w.told {
		w.res.Early++
	}
	var id int32
	if n := len(w.free); n > 0 {
		id, w.free = w.free[n-1], w.free[:n-1]
	} else {
		id = int32(len(w.calls))
		w.calls = append(w.calls, call{})
	}
	w.flying++
	w.granted++
	w.unans[w.granted] = struct{}{}
	c := &w.calls[id]
	quotas := c.fact.Quotas
	*c = call{line: p.line, refused: p.refused}
	c.fact = learn.Fact{
		Departed: throttle.Instant(w.now), Ordinal: w.granted, Flying: w.flying,
		Waited: w.now > p.since || w.head < len(w.line), Quotas: quotas[:0],
	}
	w.push(w.now+w.way(), evArrive, id)
	if w.plan.Told {
		w.replan()
	}
}
