package shaping_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A schedule is the events of a queue, in order. No two events share an instant.
type schedule struct {
	limit      throttle.Limit
	maxWaiting int
	inFlight   int // most callers in flight; zero: any number
	share      float64
	events     []event
}

type event struct {
	at   time.Duration
	kind string // come, cancel, pause, tune, close

	caller int // of come and cancel
	n      int // cost of come
	class  shaping.Priority
	tenant string
	cost   float64       // of come, as its tenant's share counts it
	d      time.Duration // longest wait of come, zero: none; length of pause
	flight time.Duration // of come, after its departure
	panics bool          // of come: its hook panics if it must wait
	limit  throttle.Limit
}

func drawSchedule(t *rapid.T) schedule {
	limits := []throttle.Limit{
		throttle.LeakyBucket(10, time.Second), throttle.LeakyBucket(20, time.Second),
		throttle.TokenBucket(10, time.Second, 3), throttle.TokenBucket(50, time.Second, 5), throttle.TokenBucket(20, time.Second, 4),
	}
	s := schedule{
		limit:      rapid.SampledFrom(limits).Draw(t, "limit"),
		maxWaiting: rapid.IntRange(1, 20).Draw(t, "most waiting"),
	}
	classes, tenants := []shaping.Priority{0}, []string{""}
	if rapid.Bool().Draw(t, "classes") {
		classes = priorities
	}
	s.share = rapid.SampledFrom([]float64{0.05, 0.3, 0.5}).Draw(t, "share")
	if rapid.Bool().Draw(t, "tenants") {
		tenants = []string{"", "light", "heavy"}
	}
	if rapid.Bool().Draw(t, "flights are bounded") {
		s.inFlight = rapid.IntRange(1, 4).Draw(t, "most in flight")
	}
	instant := func(from time.Duration) time.Duration {
		// The odd nanoseconds keep events off each other.
		ms := rapid.IntRange(int(from/time.Millisecond)+1, 2000).Draw(t, "ms")
		return time.Duration(ms)*time.Millisecond + time.Duration(len(s.events)+1)*977*time.Nanosecond
	}
	for i := range rapid.IntRange(1, 30).Draw(t, "callers") {
		come := event{at: instant(0), kind: "come", caller: i, n: rapid.IntRange(0, 3).Draw(t, "n")}
		come.class = rapid.SampledFrom(classes).Draw(t, "class")
		come.tenant = rapid.SampledFrom(tenants).Draw(t, "tenant")
		// No flight ends in the instant of another event.
		come.flight = time.Duration(rapid.IntRange(0, 500).Draw(t, "flight"))*time.Millisecond + time.Duration(100_003+13*i)
		come.panics = rapid.IntRange(0, 9).Draw(t, "panics") == 0
		if rapid.Bool().Draw(t, "bounded") {
			come.d = time.Duration(rapid.IntRange(1, 1000).Draw(t, "longest wait")) * time.Millisecond
		}
		s.events = append(s.events, come)
		if rapid.Bool().Draw(t, "gives up") {
			s.events = append(s.events, event{at: instant(min(come.at, time.Second)), kind: "cancel", caller: i})
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "pauses") {
		d := time.Duration(rapid.IntRange(1, 800).Draw(t, "length")) * time.Millisecond
		s.events = append(s.events, event{at: instant(0), kind: "pause", d: d})
	}
	for range rapid.IntRange(0, 2).Draw(t, "changes") {
		s.events = append(s.events, event{at: instant(0), kind: "tune", limit: rapid.SampledFrom(limits).Draw(t, "limit")})
	}
	if rapid.IntRange(0, 3).Draw(t, "closes") == 0 {
		s.events = append(s.events, event{at: instant(0), kind: "close"})
	}
	slices.SortFunc(s.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return s
}

// priorities of the classes, from the most urgent on.
var priorities = []shaping.Priority{shaping.PriorityHigh, 0, shaping.PriorityLow}

// weights of the tenants.
var weights = map[string]int{"light": 1, "heavy": 3}

// outcomes returns how and when each caller came out.
type outcomes map[int]string

func (o outcomes) note(caller int, at time.Duration, err error) {
	o[caller] = fmt.Sprint("left at ", at)
	if err != nil {
		o[caller] = fmt.Sprint(word(err), " at ", at)
	}
}

// play runs the schedule through a queue in a bubble.
func (s schedule) play(t *testing.T) outcomes {
	got := make(outcomes)
	synctest.Test(t, func(t *testing.T) {
		flights := &flights{Limiter: newLimiter(t, s.limit), most: s.inFlight}
		q := shaping.NewQueue(flights)
		if s.inFlight == 0 {
			q = shaping.NewQueue(flights.Limiter)
		}
		q.MaxWaiting, q.LowPriorityShare = s.maxWaiting, s.share
		q.Hook = &shaping.Hook{Wait: panicIfTold}
		start := time.Now()
		cancels := make(map[int]context.CancelFunc)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, e := range s.events {
			time.Sleep(e.at - time.Since(start))
			switch e.kind {
			case "come":
				ctx, cancel := context.WithCancel(t.Context())
				cancels[e.caller] = cancel
				wg.Go(func() {
					ctx := shaping.WithTenant(shaping.WithPriority(ctx, e.class), e.tenant, weights[e.tenant])
					err := e.wait(context.WithValue(ctx, panicking{}, e.panics), q)
					mu.Lock()
					got.note(e.caller, time.Since(start), err)
					mu.Unlock()
					if err == nil && s.inFlight > 0 {
						time.Sleep(e.flight)
						flights.land()
					}
				})
			case "cancel":
				if cancel := cancels[e.caller]; cancel != nil {
					cancel()
				}
			case "pause":
				q.Pause(e.d)
			case "tune":
				if err := q.Tune(e.limit); err != nil {
					t.Error(err)
				}
			case "close":
				q.Close()
			}
			synctest.Wait()
		}
		wg.Wait()
		for _, cancel := range cancels {
			cancel()
		}
		if n, waiting := flights.flying.Load(), q.Waiting(); n != 0 || waiting != 0 {
			t.Errorf("at the end %d are in flight, and %d in line", n, waiting)
		}
	})
	return got
}

// wait waits for the caller's turn.
func (e event) wait(ctx context.Context, q *shaping.Queue) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errPanicked
		}
	}()
	return q.WaitTurn(ctx, &shaping.Turn{N: e.n, MaxWait: e.d})
}

var errPanicked = errors.New("panicked")

// panicking is the key of a context's value: the caller's hook panics.
type panicking struct{}

func panicIfTold(ctx context.Context, _ shaping.Wait) func(error) {
	if ctx.Value(panicking{}) == true {
		panic("on request")
	}
	return nil
}

// flights is a limiter that also bounds the callers in flight. It is unknown when one of them
// lands, which wakes the queue.
type flights struct {
	throttle.Limiter
	silent
	most   int // zero: any number
	flying atomic.Int32
}

func (f *flights) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	if f.most > 0 && int(f.flying.Load()) >= f.most {
		return throttle.Grant{At: throttle.Never}, nil
	}
	granted, err := f.Limiter.Take(now, r)
	if err == nil && granted.At <= now {
		f.flying.Add(1)
	}
	return granted, err
}

func (f *flights) Refund(now throttle.Instant, g throttle.Grant, r throttle.Request) {
	f.flying.Add(-1)
	f.Limiter.Refund(now, g, r)
}

func (f *flights) land() {
	f.flying.Add(-1)
	f.wake()
}

// An oracle is the queue in its simplest form: a sorted line over a limiter, evaluated at every
// instant at which something may happen.
type oracle struct {
	limiter throttle.Limiter
	base    throttle.Instant
	most    int
	line    []event // in order of arrival
	classes map[shaping.Priority]*shares
	share   float64 // guaranteed to the classes below the most urgent
	rate    float64 // permits per second
	closed  bool
	got     outcomes

	inFlight int             // most; zero: any number
	landings []time.Duration // of the callers in flight
}

func (o *oracle) full() bool { return o.inFlight > 0 && len(o.landings) >= o.inFlight }

// shares are the shares that the tenants of a class have had, by weight.
type shares struct {
	even  float64            // share of a tenant that always waited
	had   map[string]float64 // by each tenant; an idle one has had at least even
	due   map[int]float64    // a tenant's share when a caller became its first
	owed  float64            // to the class and those below it, by those above
	saver *event             // the costliest caller for which that is saved
}

func newShares() *shares {
	return &shares{had: make(map[string]float64), due: make(map[int]float64)}
}

func (o *oracle) class(p shaping.Priority) *shares {
	if o.classes[p] == nil {
		o.classes[p] = newShares()
	}
	return o.classes[p]
}

// start of the departure of e, if it is its tenant's first. It stays what it was
// when e became that.
func (o *oracle) start(e event) float64 {
	c := o.class(e.class)
	if _, ok := c.due[e.caller]; !ok {
		c.due[e.caller] = c.had[e.tenant]
	}
	return c.due[e.caller]
}

func weightOf(tenant string) float64 { return float64(max(1, weights[tenant])) }

// weightsOf returns the sum of the weights of the tenants that wait in a class.
func (o *oracle) weightsOf(p shaping.Priority) (sum float64) {
	waits := make(map[string]bool)
	for _, e := range o.line {
		if e.class == p && !waits[e.tenant] {
			waits[e.tenant] = true
			sum += weightOf(e.tenant)
		}
	}
	return sum
}

// first returns the index of the next caller in a class.
func (o *oracle) first(p shaping.Priority) int {
	first, seen := -1, make(map[string]bool)
	for i, e := range o.line {
		if e.class != p || seen[e.tenant] {
			continue
		}
		seen[e.tenant] = true
		if start := o.start(e); first < 0 || start < o.start(o.line[first]) {
			first = i
		}
	}
	return first
}

// head returns the index of the next caller.
func (o *oracle) head() int {
	top, low, owed := -1, -1, 0.0
	for _, p := range priorities {
		switch first := o.first(p); {
		case first < 0:
		case top < 0:
			top = first
		case low < 0:
			low, owed = first, o.class(p).owed
		case first < low:
			low = first
		}
	}
	if low >= 0 && o.line[low].cost*(1-o.share) <= owed*(1+1e-9) {
		return low
	}
	return top
}

// depart counts a departure, and removes it from the line.
func (o *oracle) depart(i int) {
	e := o.line[i]
	if i == o.head() {
		o.owe(e)
	}
	c := o.class(e.class)
	c.even += e.cost / o.weightsOf(e.class)
	c.had[e.tenant] += e.cost / weightOf(e.tenant)
	o.leave(i)
}

// owe counts the departure of e for the classes that had it and those that are owed a share of it.
func (o *oracle) owe(e event) {
	longest := len(o.line)
	for _, p := range slices.Backward(priorities) {
		first := o.first(p)
		if first < 0 {
			continue
		}
		c := o.class(p)
		longest = min(longest, first)
		o.save(c, o.line[longest])
		if p >= e.class {
			c.owed = max(0, c.owed-e.cost*(1-o.share))
			if c.saver.caller == e.caller {
				c.saver = nil
			}
			continue
		}
		if c.owed < o.line[longest].cost*(1-o.share) {
			c.owed += e.cost * o.share
		}
	}
}

// save makes next the caller for which c saves, if it is the costliest. Savings for a caller that
// has left, beyond what next needs, are lost.
func (o *oracle) save(c *shares, next event) {
	waits := c.saver != nil && slices.ContainsFunc(o.line, func(w event) bool { return w.caller == c.saver.caller })
	if waits && c.saver.cost >= next.cost {
		return
	}
	if c.saver != nil && !waits {
		need, needed := next.cost*(1-o.share), c.saver.cost*(1-o.share)
		c.owed = min(c.owed, max(need, c.owed-(needed-need)))
	}
	c.saver = &next
}

// leave removes a caller from the line. An empty line remembers nothing.
func (o *oracle) leave(i int) {
	o.line = slices.Delete(o.line, i, i+1)
	left := make(map[shaping.Priority]bool)
	for _, e := range o.line {
		left[e.class] = true
	}
	maps.DeleteFunc(o.classes, func(p shaping.Priority, _ *shares) bool { return !left[p] })
}

// enter puts e in line. A new class is owed the debts of those below it.
func (o *oracle) enter(e event) {
	if o.classes[e.class] == nil {
		for _, p := range priorities {
			if below := o.classes[p]; p < e.class && below != nil {
				o.class(e.class).owed, o.class(e.class).saver = below.owed, below.saver
				break
			}
		}
	}
	if c := o.class(e.class); !slices.ContainsFunc(o.line, func(w event) bool { return w.class == e.class && w.tenant == e.tenant }) {
		c.had[e.tenant] = max(c.had[e.tenant], c.even)
	}
	o.line = append(o.line, e)
}

// predict returns the outcome that play must find. An event at an instant of the queue's own, such
// as a grant at a changed rate, would precede or follow it by chance: it comes a nanosecond later.
func (s schedule) predict(t testing.TB) outcomes {
	o := oracle{
		limiter: newLimiter(t, s.limit), base: throttle.InstantOf(time.Unix(946684800, 0)),
		most: s.maxWaiting, inFlight: s.inFlight,
		got: make(outcomes), classes: make(map[shaping.Priority]*shares), share: s.share,
	}
	o.tune(s.limit)
	for i := range s.events {
		e := &s.events[i]
		for o.runUntil(e.at) == e.at {
			e.at++
		}
		o.happen(*e)
		o.look(e.at)
		if e.panics {
			o.remove(e.caller, e.at, errPanicked)
			o.look(e.at)
		}
	}
	o.runUntil(time.Hour)
	return o.got
}

// runUntil evaluates every instant before the next event, and returns the first that is not.
func (o *oracle) runUntil(end time.Duration) time.Duration {
	for {
		next := time.Duration(throttle.Never)
		for _, w := range o.line {
			if w.d > 0 {
				next = min(next, w.at+w.d)
			}
		}
		if len(o.line) > 0 && !o.full() {
			next = min(next, o.forecast(o.line[o.head()]))
		}
		for _, at := range o.landings {
			next = min(next, at)
		}
		if next >= end {
			return next
		}
		o.landings = slices.DeleteFunc(o.landings, func(at time.Duration) bool { return at == next })
		o.look(next)
	}
}

func (o *oracle) forecast(w event) time.Duration {
	r := throttle.Request{N: w.n, Since: o.base.Add(w.at)}
	return o.limiter.Forecast(o.base.Add(w.at), r).At.Sub(o.base)
}

// look grants and rejects the callers that are due.
func (o *oracle) look(now time.Duration) {
	for len(o.line) > 0 && !o.full() {
		i := o.head()
		head := o.line[i]
		granted, err := o.limiter.Take(o.base.Add(now), throttle.Request{N: head.n, Since: o.base.Add(head.at)})
		if err == nil && granted.At > o.base.Add(now) {
			break
		}
		o.got.note(head.caller, now, err)
		if err != nil {
			o.leave(i)
			continue
		}
		if o.inFlight > 0 {
			o.landings = append(o.landings, now+head.flight)
		}
		o.depart(i)
	}
	if o.expire(now) {
		o.look(now)
	}
}

// expire rejects callers that cannot be in time.
func (o *oracle) expire(now time.Duration) (any bool) {
	for _, w := range slices.Clone(o.line) {
		if w.d > 0 && (now >= w.at+w.d || o.forecast(w) > w.at+w.d) {
			o.remove(w.caller, now, shaping.ErrDeadline)
			any = true
		}
	}
	return any
}

func (o *oracle) remove(caller int, now time.Duration, err error) {
	if i := slices.IndexFunc(o.line, func(w event) bool { return w.caller == caller }); i >= 0 {
		o.got.note(caller, now, err)
		o.leave(i)
	}
}

func (o *oracle) tune(l throttle.Limit) { o.rate = float64(l.Permits) / l.Per.Seconds() }

func (o *oracle) happen(e event) {
	now := o.base.Add(e.at)
	switch e.kind {
	case "come":
		o.come(e)
	case "cancel":
		o.remove(e.caller, e.at, context.Canceled)
	case "pause":
		o.limiter.Reconcile(now, throttle.Fact{Until: now.Add(e.d)})
	case "tune":
		o.limiter.Tune(now, e.limit)
		o.tune(e.limit)
	case "close":
		o.closed = true
		for _, w := range o.line {
			o.got.note(w.caller, e.at, shaping.ErrClosed)
		}
		o.line = nil
	}
}

// come puts e in line, unless it is rejected. A caller that can depart at once is not rejected for
// a full line.
func (o *oracle) come(e event) {
	if o.closed {
		o.got.note(e.caller, e.at, shaping.ErrClosed)
		return
	}
	e.cost = max(float64(e.n), 0.01) / o.rate
	last := len(o.line)
	o.enter(e)
	goes := o.head() == last && o.forecast(e) <= e.at && !o.full()
	switch late := e.d > 0 && o.forecast(e) > e.at+e.d; {
	case goes:
	case late:
		o.remove(e.caller, e.at, shaping.ErrDeadline)
	case last >= o.most:
		o.remove(e.caller, e.at, shaping.ErrQueueFull)
	}
}

// CI plays some of these histories, and -rapid.checks=10000 a night's worth.
func TestQueueBehavesAsASortedLine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSchedule(rt)
		want, got := s.predict(t), s.play(t)
		if !maps.Equal(got, want) {
			for _, e := range s.events {
				rt.Logf("%+v", e)
			}
			for caller, w := range want {
				if got[caller] != w {
					rt.Errorf("caller %d %s, want %s", caller, got[caller], w)
				}
			}
		}
	})
}
