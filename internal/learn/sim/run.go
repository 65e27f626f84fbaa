package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/gate"
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
	answer  course.Answer
	wait    time.Duration // reported by a refusal; zero: none
	line    int64         // when it first joined the line
	refused int
}

type world struct {
	Scenario
	rng          *rand.Rand
	now          int64
	start        int64
	events       []event
	seq          uint64
	door         *door
	calls        []call
	free         []int32
	line         []waiting // oldest at head
	head         int
	flying       int
	departed     uint64
	gate         *gate.Gate
	course       *course.Course   // nil: no learning
	due          throttle.Instant // when the head of the line asks again; Never: an answer must come
	rings        throttle.Instant // the same, as it was when the timer was set
	timerAt      int64
	late         time.Duration // lateness of the last caller
	lateTo       throttle.Instant
	notBefore    int64            // no departure before it
	refusedFirst int64            // when the first refusal landed
	asked        int              // refused in a row, each after the previous had landed
	refusedAt    throttle.Instant // when the last refusal landed
	strange      float64
	burst        int
	lats         []float64
	res          Result
	served       int
	history      history
	ended        bool
}

type waiting struct {
	since   throttle.Instant // arrival, as counted
	line    int64            // first arrival
	refused int
}

// Run plays the scenario with the seed.
func Run(s Scenario, seed uint64) Result {
	w := &world{Scenario: s, rng: rand.New(rand.NewPCG(seed, 0x57656972))}
	w.start = 1_700_000_000_000_000_000 + w.rng.Int64N(int64(time.Hour))
	w.now, w.res.start = w.start, w.start
	w.door = newDoor(s.Vendor, w.now)
	w.open()
	w.due, w.rings, w.timerAt = throttle.Never, throttle.Never, math.MaxInt64
	w.notBefore = math.MinInt64
	w.res.BinLen = 100 * time.Millisecond
	for i := range s.Changes {
		w.push(w.start+int64(s.Changes[i].At), evChange, int32(i))
	}
	for range s.Workers {
		w.line = append(w.line, waiting{since: throttle.Instant(w.now), line: w.now})
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
		if w.res.door == nil && e.at >= w.start+int64(s.From) {
			w.res.door = w.door.clone()
		}
		w.now = e.at
		w.handle(e)
	}
	w.res.State, _ = w.course.Learned()
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
		w.learn(e.id)
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
		w.enter()
		if w.Later > 0 && w.now-w.start >= int64(w.LaterAt) {
			w.Open = w.Later
		}
		w.push(w.now+w.gap(w.Open), evDemand, 0)
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
	a := &c.answer
	a.Served = ok
	c.wait, a.Quotas = w.door.report(w.Style, w.now, ok, a.Quotas)
	a.Quotas = w.Style.spoil(w.rng, &w.history, w.now, ok, a.Quotas)
	if w.Style.Lie == Odd {
		w.garble(c)
	}
	served := w.now
	if ok {
		d := float64(w.Service)
		if w.ServiceTo > 0 {
			d += w.rng.Float64() * float64(w.ServiceTo-w.Service)
		}
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
	c.answer.Quotas = c.answer.Quotas[:0]
	for range w.rng.IntN(6) {
		c.answer.Quotas = append(c.answer.Quotas, learn.Quota{
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
	c.answer.Others = len(w.line) > w.head
	w.count(c)
	w.probe(&c.answer)
	again := waiting{since: throttle.Instant(w.now), line: c.line, refused: c.refused + 1}
	served := c.answer.Served
	if w.Late > 0 {
		w.push(w.now+w.delay(), evFact, id)
	} else {
		w.learn(id)
	}
	switch {
	case !served:
		w.rejoin(again)
	case w.Workers > 0:
		w.enter()
	}
}

// probe counts consecutive refusals of calls that departed after the previous one had landed.
func (w *world) probe(a *course.Answer) {
	switch {
	case a.Served:
		w.asked = 0
	case a.Departed >= w.refusedAt:
		w.asked++
		w.refusedAt = throttle.Instant(w.now)
	}
	if w.now-w.start >= int64(w.From) {
		w.res.Probes = max(w.res.Probes, w.asked-1)
	}
}

func (w *world) delay() int64 { return int64(float64(w.Late) * (0.5 + w.rng.Float64())) }

func (w *world) bin() *Bin {
	i := int((w.now - w.start) / int64(w.res.BinLen))
	for len(w.res.Bins) <= i {
		w.res.Bins = append(w.res.Bins, Bin{})
	}
	return &w.res.Bins[i]
}

func (w *world) count(c *call) {
	measured := w.now-w.start >= int64(w.From)
	if !c.answer.Served {
		w.bin().Refused++
		w.res.All++
		w.ended = w.ended || w.res.All == w.Refusals
		if w.refusedFirst == 0 {
			w.refusedFirst = w.now
		}
		if int64(c.answer.Departed) <= w.refusedFirst {
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
	if w.refusedFirst == 0 {
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

// learn passes an answer to the gate. The call is in flight until then: calls with unknown answers
// are bounded.
func (w *world) learn(id int32) {
	c, now := &w.calls[id], throttle.Instant(w.now)
	a := c.answer // c may be another call's when the gate has let others depart
	w.flying--
	w.free = append(w.free, id)
	if !a.Served {
		until := throttle.Instant(0)
		if c.wait > 0 {
			until = now.Add(c.wait)
			w.notBefore = max(w.notBefore, int64(until))
		}
		a.Refused, a.Until = true, until
		w.course.Observe(context.Background(), now, &a)
		w.gate.Reconcile(now, throttle.Fact{Until: until})
		if Trace != nil {
			Trace(w, &a)
		}
		w.pump()
		a.Quotas, a.Refused = nil, false
	}
	w.gate.Landed(context.Background(), func() throttle.Instant { return now }, &a)
	if w.Knows != nil && w.Knows.Most > 0 {
		w.gate.Vacate()
	}
	if Trace != nil && a.Served {
		Trace(w, &a)
	}
}

// Trace is called with each answer that the gate has applied; nil: no trace.
var Trace func(w *world, a *course.Answer)

// patient is the longest pause that callers wait through: the gate never closes.
const patient = 100 * 365 * 24 * time.Hour

// open makes the gate.
func (w *world) open() {
	limits, most := w.Configured, 0
	if w.Knows != nil {
		if most = w.Knows.Most; w.Knows.Rate > 0 {
			limits = append(slices.Clone(limits), throttle.TokenBucket(1, time.Duration(1e9/w.Knows.Rate), 1))
		}
	}
	limiter, err := throttle.Local{}.Limiter("", limits...)
	if err != nil {
		panic(err)
	}
	if !w.NoLearner && w.Knows == nil {
		set := course.SettingOf(limits)
		set.Spread, set.Shared, set.Without = w.Spread, w.Late > 0, w.Without
		w.course = course.NewCourse(set, nil)
	}
	w.gate = gate.NewGate(limiter, w.course, nil, patient)
	w.gate.Bind(gate.Bound{Most: most})
	w.gate.Notify(w.pump)
}
