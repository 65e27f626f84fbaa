package course

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// Ledgers delay calls by the quotas that answers report, and by what this process has sent. They
// are one of the vetoes of a gate. There is a ledger for each unit: for requests, if the lane waits
// for resets, and for each other unit in which calls are priced.
//
// A call that hangs is counted for the time of its lease.
type Ledgers struct {
	Flights *flight.Table // the calls in flight
	Share   float64       // of a quota, see learn.Setting; set before first use

	waits  bool // for resets that are exact
	learns bool
	all    []ledger
	quotas []learn.Quota // those of one unit in an answer
}

// A ledger counts what departs in one unit.
type ledger struct {
	unit   string
	limit  int              // place of the limit in which calls are priced; negative: none
	burst  int64            // of that limit
	landed bool             // a call was answered, or is overdue
	calls  int64            // that departed
	number int64            // cost of all that departed
	flying int64            // cost of those in flight that are not overdue
	state  *learn.State     // nil: nothing was reported
	left   throttle.Instant // when the last call departed
	paid   int64            // cost of that call
	from   throttle.Instant // since when its permits are paid for, at the rate
	rate   float64          // permits per second, by the state's plan; zero: any number

	estimated, settled float64 // costs of the calls that were settled, smoothed
	ratio              float64 // of those
}

// requests is the unit in which each call costs one.
const requests = "requests"

// NewLedgers returns the ledgers of a lane with these limits. Calls are in the table of the course,
// if there is one. If they wait for resets, exact ones are believed. If the lane learns, the rest
// of quotas in other units bounds departures, too.
func NewLedgers(c *Course, limits []throttle.Limit, waits, learns bool) *Ledgers {
	s := &Ledgers{Flights: new(flight.Table), waits: waits, learns: learns}
	if c != nil {
		s.Flights = c.flights
	}
	if waits {
		s.find(requests)
	}
	s.Configure(limits)
	return s
}

// Hold reports whether there are ledgers: otherwise no call is held.
func (s *Ledgers) Hold() bool { return len(s.all) > 0 }

// Configure finds the limits in which calls are priced. The caller holds the lock.
func (s *Ledgers) Configure(limits []throttle.Limit) {
	for i := range s.all {
		s.all[i].limit = -1
	}
	for i, l := range slices.Backward(limits) {
		if unit := unitOf(l.Unit); unit != requests && s.learns {
			if ledger := s.find(unit); ledger != nil {
				ledger.limit, ledger.burst = i, int64(l.Capacity())
			}
		}
	}
}

// unitOf returns the unit of a limit or quota.
func unitOf(unit string) string { return cmp.Or(unit, requests) }

// find returns the ledger of a unit, or a new one if there is room; otherwise nil.
func (s *Ledgers) find(unit string) *ledger {
	i := slices.IndexFunc(s.all, func(l ledger) bool { return l.unit == unit })
	if i < 0 && len(s.all) == flight.MaxBills {
		return nil
	}
	if i < 0 {
		i, s.all = len(s.all), append(s.all, ledger{unit: unit, limit: -1, ratio: 1})
		if i == 0 {
			s.Flights.Ended = append(s.Flights.Ended, s.ended)
		}
	}
	return &s.all[i]
}

// cost returns what a call costs.
func (l *ledger) cost(r throttle.Request) int64 {
	switch {
	case l.unit == requests:
		return 1
	case l.limit < 0:
		return 0
	}
	return int64(math.Ceil(float64(max(0, r.Of(l.limit))) * l.ratio))
}

// Settle applies a call's actual cost in a unit. The cost of other calls is estimated in the same
// proportion.
func (s *Ledgers) Settle(unit string, r, actual throttle.Request) {
	s.Flights.Lock()
	defer s.Flights.Unlock()
	for i := range s.all {
		l := &s.all[i]
		if l.unit != unit || l.limit < 0 || r.Of(l.limit) <= 0 {
			continue
		}
		l.estimated += (float64(r.Of(l.limit)) - l.estimated) / 8 // as round trips are smoothed: RFC 6298, section 2
		l.settled += (min(float64(actual.Of(l.limit)), float64(l.burst)) - l.settled) / 8
		l.ratio = l.settled / l.estimated
	}
}

// Ask implements the veto of a gate. A call that is held waits for an answer, at most until an instant.
func (s *Ledgers) Ask(t flight.Turn) (f throttle.Forecast, err error) {
	fewer := s.Flights.Lapse(t.Now)
	for i := range s.all {
		l := &s.all[i]
		cost := l.cost(t.Request)
		if t.ID == 0 || cost == 0 {
			continue
		}
		if until := l.spent(t.Now, cost); until > t.Now {
			f = throttle.Forecast{At: max(f.At, min(until, fewer)), Reason: throttle.ReasonConcurrency}
		}
		if at := l.paced(t.Now, cost); at > max(t.Now, f.At) {
			f = throttle.Forecast{At: at, Reason: throttle.ReasonRate, Limit: learnedLimit}
		}
	}
	return f, nil
}

// spent returns until when a call of that cost is held, unless an answer arrives: the rest is in
// flight, or is spent. Before the first answer the burst of the configured limit is the rest.
func (l *ledger) spent(now throttle.Instant, cost int64) (until throttle.Instant) {
	switch {
	case l.state != nil:
		_, until = l.state.Room(now, l.number, l.flying, cost)
	case l.limit >= 0 && !l.landed && l.number > 0 && l.number+cost > l.burst:
		until = throttle.Never
	}
	return until
}

// paced returns the instant before which a call of that cost does not depart, by the learned quotas of a unit.
func (l *ledger) paced(now throttle.Instant, cost int64) throttle.Instant {
	if l.limit < 0 || l.state == nil {
		return 0
	}
	l.state.Ahead = cost - 1
	p := l.state.Plan(now, l.number)
	l.rate = p.Rate
	return max(holdOf(p, l.left), l.due())
}

// due returns when the permits of the last call are paid for, at the rate in force.
func (l *ledger) due() throttle.Instant {
	if l.rate <= 0 {
		return 0
	}
	longest := min(max(cmp.Or(l.state.LongestReset(), rarest), soonest), rarest)
	return l.from.Add(time.Duration(min(float64(l.paid)/l.rate, longest) * 1e9))
}

// Board implements the veto of a gate.
func (s *Ledgers) Board(t flight.Turn) throttle.Instant {
	for i := range s.all {
		l := &s.all[i]
		cost := l.cost(t.Request)
		l.calls++
		l.number += cost
		l.flying += cost
		t.Call.Bills[i] = flight.Bill{Cost: cost, Number: l.number, Flying: l.flying}
		l.from, l.left, l.paid = max(l.due(), t.Now.Add(-slack)), t.Now, cost
	}
	return 0
}

// Leave implements the veto of a gate: the table says when a call ends.
func (s *Ledgers) Leave(flight.Turn) {}

const (
	// slack is how much later than due a call may depart without delaying those behind it: the
	// least tolerance of a limiter.
	slack = 10 * time.Millisecond
	// A wrong rate is probed at least this often, in seconds: each hour if answers report no reset.
	// Otherwise the quota is whole again at the reset, or has one permit more.
	rarest, soonest = 3600, 10
)

// ended counts a call as no longer in flight. If its answer reported nothing, it has spent nothing,
// as far as is known.
func (s *Ledgers) ended(c *flight.Call) {
	for i := range s.all {
		l, b := &s.all[i], &c.Bills[i]
		l.flying -= b.Cost
		l.landed = l.landed || b.Number > 0
		if l.state != nil && b.Cost > 0 && !b.Read {
			l.state.Lapsed(b.Number-b.Cost+1, b.Cost)
		}
	}
}

// Read applies the report of an answer. It returns how long it is until the reset of a spent quota,
// if calls wait for it, and marks the quotas that bound calls.
func (s *Ledgers) Read(now throttle.Instant, a *Answer) (wait time.Duration) {
	if len(a.Quotas) == 0 {
		return 0
	}
	s.Flights.Lock()
	defer s.Flights.Unlock()
	call := s.Flights.Find(a.ID)
	if call == nil { // it departed from another lane
		call = &flight.Call{At: a.Departed, Hangs: true}
	}
	for i := range a.Quotas {
		if s.waits && a.Quotas[i].HasReset {
			s.find(unitOf(a.Quotas[i].Unit))
		}
	}
	for i := range s.all {
		l := &s.all[i]
		if l.limit < 0 && a.Refused || !s.pick(l.unit, a.Quotas) {
			continue
		}
		if l.state == nil {
			l.state = new(learn.New(learn.Setting{Waits: s.waits, Share: s.Share}))
		}
		l.read(now, call, &call.Bills[i], a.Refused, s.quotas)
		if s.waits {
			wait = max(wait, l.waits(now, a.Quotas, s.quotas))
		}
	}
	return wait
}

// pick copies the quotas of a unit, which the ledger's state knows as requests. It returns
// false if there are none.
func (s *Ledgers) pick(unit string, from []learn.Quota) bool {
	s.quotas = s.quotas[:0]
	for i := range from {
		if unitOf(from[i].Unit) == unit {
			s.quotas = append(s.quotas, from[i])
			s.quotas[len(s.quotas)-1].Unit = requests
		}
	}
	return len(s.quotas) > 0
}

// waits marks the quotas whose resets are exact, of which own are those of the ledger's unit. It
// returns how long it is until the reset of a spent one; zero: none.
func (l *ledger) waits(now throttle.Instant, quotas, own []learn.Quota) (wait time.Duration) {
	for i := range quotas {
		q := &quotas[i]
		if unitOf(q.Unit) != l.unit {
			continue
		}
		exact, reset := l.state.Awaits(now, &own[0])
		if q.Held, own = exact, own[1:]; exact && q.Remaining < 1 {
			wait = max(wait, reset)
		}
	}
	return wait
}

// read applies what the answer to a call reports of quotas in the ledger's unit.
func (l *ledger) read(now throttle.Instant, c *flight.Call, b *flight.Bill, refused bool, quotas []learn.Quota) {
	number, answered := b.Number, l.number-l.flying
	if number == 0 { // it departed from another lane, or before anything was counted
		number, b.Flying = l.number, l.flying
	} else if !c.Hangs {
		answered += b.Cost
	}
	b.Read = true
	l.state.Cost = float64(l.number) / float64(max(l.calls, 1))
	l.state.Read(&learn.Fact{
		Departed: c.At, Landed: now, Ordinal: number, Granted: l.number, Answered: answered,
		Flying: int(b.Flying-b.Cost) + 1, Waited: true, Refused: refused, Quotas: quotas,
	}, b.Cost, now)
}

// Room implements the veto of a gate.
func (s *Ledgers) Room(now throttle.Instant, n int) int {
	if l := &s.all[0]; l.state != nil && l.unit == requests {
		free, _ := l.state.Room(now, l.number, l.flying, 1)
		n = int(min(float64(n), free))
	}
	return n
}

// Forget drops what was reported: calls depart, and their answers report it again. The caller holds
// the lock.
func (s *Ledgers) Forget() {
	for i := range s.all {
		s.all[i].state, s.all[i].rate = nil, 0
	}
}
