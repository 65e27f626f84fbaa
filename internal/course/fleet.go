package course

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A fleet is the part of a course that shares its lane with other processes: they learn as one.
// Each sends the vendor's answers to the others through the store, and observes all answers in the
// store's order.
//
// Until the first refusal, or the first reported quota, each grows its own calls in flight, and
// sends only the number of departures. From then on the store counts departures, and the state, in
// instants of the store's clock, is equal in all processes.
type fleet struct {
	replicator store.Replicator
	obeys      bool // does not begin to learn
	begun      bool // the state is shared by all

	unsent      store.Entry      // to send, except for facts
	facts       []learn.Fact     // to send, by the lane's clock
	timer       *time.Timer      // for sending facts
	lingers     time.Duration    // the timer's; zero: not running
	met         bool             // earlier knowledge was sent
	braked      throttle.Instant // no departure before it, or before the sent refusal comes back
	saidCut     int64            // of the state at the last urgent message
	saidEpisode bool             // the same; until one of both changes, no message is urgent
	stepped     throttle.Instant // when the store's clock was seen to move back
	unbound     bool             // readings set no ceiling in the store
	reserve     int              // departures below the ceiling that go one by one

	local   int64            // departures of this process that the store knew at the last call
	base    [2]int64         // ordinal and departures of this process at some call before
	share   float64          // departures of the lane for each of this process
	view    store.FleetState // as the store returned it last
	learned throttle.Instant // when the last message was applied, by the store's clock
	spoke   throttle.Instant // when the last pulse was sent
	most    int              // calls in flight of all processes, as learned from refusals; zero: no such bound
	above   int              // most before it fell last
	fell    throttle.Instant // when that was; zero: never
	paced   bool             // the rate in force was found without reported quotas
	every   int64            // one of every served calls is sent
	rate    float64          // in force in the store

	lease  func() store.Flights // of the store; nil: it bounds no calls in flight
	places store.Flights        // bound most; nil: none were needed yet, or there can be none
	wake   func()               // the callers in line; nil: there were none yet
}

const (
	mostFacts = 256             // waiting to be sent; the oldest are dropped
	stale     = time.Second     // age at which unsent served calls teach nothing
	pulse     = 2 * time.Second // interval of messages while calls are made and nothing is learned
	brake     = 100 * time.Millisecond
	atOnce    = time.Millisecond
	soon      = 5 * time.Millisecond
	later     = 100 * time.Millisecond // or two turns of this process, if that is longer
)

// Share makes the course learn together with the processes that share its lane through the limiter.
// A process that does not learn by itself sends its answers, and obeys once another has begun. Lease
// returns what bounds the calls in flight of all processes, nil if there can be none; it is called
// with the lock held. If lease is nil, a rate is learned instead of such a bound.
func (c *Course) Share(with store.Replicator, learns bool, lease func() store.Flights) {
	c.mu.Lock()
	c.fleet = &fleet{replicator: with, share: 1, obeys: !learns, lease: lease}
	c.flights.Ended, c.flights.Left = append(c.flights.Ended, c.ended), c.vacate
	if c.setting.Shared = true; lease == nil {
		c.setting.Without = learn.Trials
	}
	c.reset()
	c.mu.Unlock()
	with.Replicate(c)
}

// say sends to the others at once.
func (c *Course) say(m learn.Message) {
	c.fleet.unsent.Data = m.Append(c.fleet.unsent.Data)
	c.fleet.replicator.Flush()
}

// Learns reports whether refusals teach something.
func (c *Course) Learns() bool {
	if c == nil || c.fleet == nil || !c.fleet.obeys {
		return c != nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fleet.begun
}

// together reports whether the state is shared by all processes.
func (c *Course) together() bool { return c.fleet != nil && c.fleet.begun }

// clock returns an instant by the clock of the state.
func (c *Course) clock(at throttle.Instant) throttle.Instant {
	if c.together() && at > 0 {
		return at.Add(c.fleet.view.ClockOffset)
	}
	return at
}

// granted returns the latest ordinal by the state's count. Some of the store's grants are still in
// the future, and others may have departed since: at the rate in force.
func (c *Course) granted(now throttle.Instant) int64 {
	if !c.together() {
		return c.Look().Ordinal()
	}
	f := c.fleet
	since := f.rate * min(c.clock(now).Sub(f.view.Last).Seconds(), 0.25)
	return max(0, f.view.Ordinal+int64(math.Round(max(since, float64(-2*f.view.Replicas)))))
}

// planned returns the state's plan, by the lane's clock.
func (c *Course) planned(now throttle.Instant) learn.Plan {
	if c.fleet != nil && c.fleet.obeys && !c.fleet.begun {
		return learn.Plan{}
	}
	p := c.state.Plan(c.clock(now), c.granted(now))
	if !c.together() {
		return p
	}
	shift(-c.fleet.view.ClockOffset, &p.Pause)
	p.Hold, p.Sure, p.Asks = p.Pause, p.Pause, false // the store holds calls for reported quotas
	c.fleet.paced, c.fleet.every = p.Rate > 0 && !p.Bounded && !c.state.Episode, 1
	if c.state.Settled(p) {
		p.Most = 0
		c.fleet.every = int64(max(1, min(cmp.Or(p.Rate, c.setting.Configured)/25, sample)))
	}
	switch m := c.state.Mode; {
	case p.Since > 0: // probes go one by one in the store
	case m == learn.Trial || m == learn.Flight:
		c.bind(p.Most, now)
	default:
		c.bind(0, now)
	}
	p.Most = c.part(p.Most)
	return p
}

// shift moves existing instants from one clock to another.
func shift(by time.Duration, all ...*throttle.Instant) {
	for _, at := range all {
		if *at > 0 {
			*at = at.Add(by)
		}
	}
}

// part returns this process's part of a bound of the lane's calls in flight, at least one; zero: no
// bound.
func (c *Course) part(most int) int {
	if most == 0 || !c.together() {
		return most
	}
	return max(1, int(float64(most)/c.fleet.share+0.5))
}

// bind bounds the calls in flight of all processes; zero: no bound.
func (c *Course) bind(most int, now throttle.Instant) {
	f := c.fleet
	if most < f.most {
		f.above, f.fell = c.allowed(now), now
	}
	if f.most = most; most > 0 && f.places == nil && f.lease != nil {
		f.places = f.lease()
	}
	if f.places != nil {
		f.places.Bound(most, f.learned)
	}
}

// allowed returns the bound of late: for two usual answers after it fell, as many may be in flight
// as before.
func (c *Course) allowed(now throttle.Instant) int {
	if f := c.fleet; now.Sub(f.fell).Seconds() < 2*c.state.RTT {
		return max(f.most, f.above)
	}
	return c.fleet.most
}

// ended gives back the place of an overdue call, as long as it is not known whether the vendor counts
// calls in flight.
func (c *Course) ended(call *flight.Call) {
	if call.Hangs && c.state.Mode == learn.Trial {
		c.vacate(call)
	}
}

// vacate gives back the place of a call. That of a refused one is kept for two usual answers: too
// many are in flight, and another call that departs would be refused, too.
func (c *Course) vacate(call *flight.Call) {
	switch {
	case call.Places == 0:
	case call.Refused:
		land, wake := c.fleet.places.Land, c.fleet.wake
		time.AfterFunc(time.Duration(2e9*c.state.RTT), func() {
			if land() && wake != nil {
				wake()
			}
		})
	default:
		c.fleet.places.Land()
	}
	call.Places = 0
}

// Await receives the number of callers in line, and what wakes them, under the lock.
func (c *Course) Await(n int, wake func()) {
	if c != nil && c.fleet != nil && c.fleet.places != nil {
		c.fleet.wake = wake
		c.fleet.places.Notify(wake)
		c.fleet.places.Await(n)
	}
}

// Close gives back the places in flight, and takes no more.
func (c *Course) Close() {
	if c == nil || c.fleet == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fleet.lease = nil; c.fleet.places != nil { // a call of the limiter may be under way
		_ = c.fleet.places.Close() // it returns no error
	}
}

// leased reports whether the plan's bound of calls in flight is kept by all processes together.
func (c *Course) leased() bool {
	return c.fleet != nil && c.fleet.places != nil && c.fleet.most > 0 && c.plan.Since == 0
}

// note applies an answer, whether or not all calls are held. It reports whether the answer must be sent at once,
// rather than with the next call.
func (f *fleet) note(s *learn.State, fact learn.Fact, held bool) (urgent bool) {
	fresh := fact.Ordinal > s.Cut || !f.begun
	if urgent = fresh && (fact.Refused || s.Episode || !f.begun) && (f.saidCut != s.Cut || f.saidEpisode != s.Episode || !f.met); urgent {
		f.saidCut, f.saidEpisode = s.Cut, s.Episode
		f.unsent.Revoke = f.unsent.Revoke || fact.Refused != s.Episode // an episode begins, or ends
	}
	near := f.near(&fact)
	if !fact.Refused && !urgent && !near && !f.sends(&fact) {
		return false
	}
	fact.Quotas = slices.Clone(fact.Quotas)
	if len(f.facts) == mostFacts {
		f.facts = slices.Delete(f.facts, 0, 1)
	}
	f.facts = append(f.facts, fact)
	if !urgent {
		f.linger(fact.Refused, held || near)
	}
	return urgent
}

// near reports whether few permits were left, so that calls may soon wait until the store knows
// that earlier ones have landed.
func (f *fleet) near(fact *learn.Fact) bool {
	left, ok := learn.Left(fact.Quotas)
	return ok && !f.unbound && left <= float64(f.reserve+2*int(f.every)*f.view.Replicas)
}

// sends reports whether a served call is sent to the others. While readings bind, a call without one
// matters, too: the vendor is taken not to have counted it.
func (f *fleet) sends(fact *learn.Fact) bool {
	if !fact.Waited && len(fact.Quotas) == 0 && !f.paced && f.unbound {
		return fact.Ordinal%sample == 0
	}
	return fact.Ordinal%f.every == 0 // below a learned rate, calls without a wait show low demand
}

// linger bounds how long unsent facts wait for the next store call. While a rate is in force such
// calls are made; otherwise all callers may be waiting for these facts.
func (f *fleet) linger(refused, held bool) {
	d := soon
	switch {
	case refused: // what was served is counted without it
		d = atOnce
	case f.paced && !held:
		turn := time.Duration(float64(f.view.Replicas) / max(f.rate, 1) * 1e9) // between two calls of this process
		d = max(later, min(2*turn, stale/2))
	}
	switch {
	case f.lingers > 0 && f.lingers <= d: // what is to be sent goes sooner already
		return
	case f.timer == nil:
		f.timer = time.AfterFunc(d, f.replicator.Flush)
	default:
		f.timer.Reset(d)
	}
	f.lingers = d
}

// observeShared is observe in a fleet.
func (c *Course) observeShared(now throttle.Instant, a *Answer) {
	c.mu.Lock()
	f, flown := c.fact(now, a)
	var given, over int64
	places := 0
	if flown != nil {
		given, over, places, flown.Refused = flown.Given, flown.Over, flown.Places, a.Refused
	}
	s, urgent := c.fleet, false
	switch {
	case !a.Served && !a.Refused:
		if s.begun && given > 0 {
			if len(s.unsent.Data) == 0 && !s.unbound { // calls of others may wait until the store knows that this one has landed
				s.linger(false, c.hold() > now)
			}
			s.unsent.Data = learn.Message{Unread: given}.Append(s.unsent.Data)
		}
	case s.obeys && !s.begun:
	case s.begun || a.Refused || len(a.Quotas) > 0:
		s.read(a, given, over)
		if !s.begun && !s.met { // what a sub-lane has of its lane comes before it, and counts
			s.unsent.Data = learn.Message{Meeting: c.meeting(&f)}.Append(s.unsent.Data)
		}
		f.Ordinal, f.Flying = given, c.flying(&f)
		switch {
		case given == 0:
		case places > 0: // a landing that the store does not know of counts no longer
			f.Flying = max(1, min(int(given-over), places+1))
		case len(a.Quotas) > 0 && !s.unbound:
			f.Flying = max(1, int(given-over)) // the store's bound of departures
		}
		if s.paced { // a wait for the store is no wait for a permit
			f.Waited = a.waited(2 * s.view.RoundTrip)
		}
		urgent = s.note(c.state, f, c.hold() > now)
		s.met = true
	case !c.state.Quiet(&f):
		c.state.Observe(&f, now)
		c.replan(now)
	}
	if urgent {
		if a.Refused || !s.begun {
			s.braked = now.Add(brake)
		}
		s.replicator.Flush()
	}
	c.mu.Unlock()
}

// read notes the quota that an answer reports, for the store.
func (f *fleet) read(a *Answer, given, over int64) {
	if a.Refused {
		f.unsent.Refused++
	}
	left, ok := learn.Left(a.Quotas)
	if given == 0 { // it departed before departures were counted
		given = f.view.Ordinal + 1
	}
	if ok && !f.unbound && given >= f.unsent.Reading.Ordinal {
		f.unsent.Reading = store.Reading{Ordinal: given, Left: int64(left), Landed: over}
	}
}

// flying returns how many calls of all processes had departed unsent when one of this process did.
// That is the number that departs until that call is sent.
func (c *Course) flying(f *learn.Fact) int {
	own := float64(f.Flying)
	if c.fleet.rate == 0 {
		return max(1, int(own*c.fleet.share+0.5))
	}
	took := max(f.Landed.Sub(f.Departed).Seconds(), c.state.RTT)
	return max(1, int(max(own, c.fleet.rate*took)+0.5))
}

// meeting returns earlier knowledge, before the first fact is sent, or a sub-lane's.
func (c *Course) meeting(f *learn.Fact) *learn.Meeting {
	s := c.state
	m := &learn.Meeting{Took: time.Duration(s.RTT * 1e9), First: s.End.At, Cap: float64(f.Flying) * c.fleet.share}
	if s.RTT == 0 {
		m.Took, m.First = f.Landed.Sub(f.Departed), f.Departed
	}
	last, each, ahead := c.Look().Ordinal(), c.fleet.share, c.fleet.view.ClockOffset
	if c.fleet.begun { // its numbers and instants are the store's
		last, each, ahead = c.fleet.view.Ordinal, 1, 0
	}
	for i, mark := range s.Pace {
		m.Pace[i], m.Back[i] = mark.At, int64(float64(last-mark.Ordinal)*each)
	}
	shift(ahead, &m.First, &m.Pace[0], &m.Pace[1])
	return m
}

// departed notes a departure that the store did not count, the nth of this process.
func (f *fleet) departed(now throttle.Instant, n int64) {
	f.unsent.Uncounted++
	if !f.begun && (n >= 8 && n&(n-1) == 0 || now.Sub(f.spoke) > pulse) {
		f.spoke = now
		f.replicator.Flush()
	}
}
