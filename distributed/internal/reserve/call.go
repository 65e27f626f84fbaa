package reserve

import (
	"runtime"
	"slices"
	"time"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
)

// A flight is the call in progress, of which there is one at most, and the memory
// that each call uses again. While underway, its request and words belong to the goroutine
// of the call, which needs no lock for them.
type flight struct {
	lined   bool           // it stands in the node's line
	lends   bool           // the next call is lent to the caller it is for
	lent    bool           // this call was
	dated   bool           // it asks for the permit of an instant at which another limiter lets its caller go
	request script.Request // without groups it only reports something, or probes
	words   []any          // of the command
	permits []permit
	costs   []int64 // of the last request in line; never written, because permits have it too
	reports reports // that it sends
	spent   []int64 // of each limit, in an outage, that it reports; nil: of limits that were replaced
	voided  int     // of the limiter when it left: if that has grown, what it brings is void
}

// ahead reports whether it asks for permits ahead of callers.
func (f *flight) ahead() bool {
	return !f.dated && len(f.request.Groups) > 0 && f.request.Groups[0].Age < 0
}

// granted returns the permits of a reply, dated by the queue's clock. The reply
// counts permits in the order of the groups in line:
//
//	asked:    2 of cost 1, 1 of cost 5
//	replied:  3 at 10:00:00.100
//	granted:  2 of cost 1 and 1 of cost 5, both at 10:00:00.100
func (f *flight) granted(got *script.Reply, c *call.Clock) []permit {
	out := f.permits[:0]
	req, ahead, g, left, ordinal := &f.request, f.dated || f.ahead(), 0, 0, got.Learned.First
	for _, p := range got.Permits {
		for count := p.Count; count > 0; {
			if left == 0 {
				if g == len(req.Groups) {
					f.permits = out
					return out // more than was asked for
				}
				left = req.Groups[g].Count
				g++
			}
			n := min(count, left)
			granted := permit{at: c.Here(p.At), there: p.At, count: n, costs: req.Groups[g-1].Costs, of: got.Seen.Generation, ahead: ahead}
			if req.Update != nil {
				granted.first = ordinal + 1
				ordinal += int64(n)
			}
			out = append(out, granted)
			count, left = count-n, left-n
		}
	}
	f.permits = out
	return out
}

// Call implements [conn.Caller]. A watcher, or a function of the client's options, may panic.
// Then so does the caller to whom the call was lent, and leaves the line, so that the queue
// asks again for the others.
func (l *Limiter) Call() {
	made := false
	defer func() {
		if !made {
			l.take(func() { l.missed("panic") })
			l.finish(false)
		}
	}()
	var got script.Reply
	o := l.Make(l, script.Decide, l.prepare, func(v any) (err error) {
		got, err = l.flight.request.Decode(v)
		return err
	})
	made = true
	l.land(&o, &got)
}

// land ends a call: it applies the outcome and then, with no lock held, what was learned. It
// wakes the queue, and calls again if there is something to report.
func (l *Limiter) land(o *call.Outcome, got *script.Reply) {
	defer l.finish(true)
	var events []store.Event
	l.take(func() {
		if o.Cause != call.Open {
			l.stats.Calls++
		}
		if o.Err == nil {
			events = l.receive(got, o.Took, o.Read)
			return
		}
		if o.Cause != call.Open {
			l.missed(o.Cause)
		}
		l.Failed(l, o)
	})
	l.strayed(events)
	switch {
	case o.Err != nil:
		l.logShare()
	case l.flight.request.Update != nil:
		l.apply(got)
	}
}

// missed applies a call that was not answered. If the script may have run all the same, the
// permits that it granted are lost.
func (l *Limiter) missed(cause string) {
	req, ran, again := &l.flight.request, conn.Executed(cause), l.flight.reports
	l.flight.reports = nil
	l.stats.Failures++
	if s := l.learning; s != nil {
		if s.revokes = false; ran {
			s.entry = store.Entry{} // the store may have its message, and facts count once
		}
	}
	if ran {
		for _, g := range req.Groups {
			l.stats.Unknown += uint64(g.Count)
		}
		again = slices.DeleteFunc(again, func(p pending) bool { return p.gives() }) // the others are strict if sent twice
	}
	if req.Limits != l.encoded {
		again = again.timed()
	}
	waiting := l.reports
	l.reports = again
	for _, p := range waiting {
		l.reports.add(p, l.encoded)
	}
}

// prepare returns the words of a call that leaves now, and what the call is for.
func (l *Limiter) prepare() ([]any, store.Operation) {
	keys, operation := l.compose(l.propose())
	f := &l.flight
	f.words = f.request.Args(conn.Command(f.words[:0], keys))
	return f.words, operation
}

// compose makes the request of a call that leaves now. It returns its keys, and what the
// call is for.
func (l *Limiter) compose(update *script.Update) (keys []any, operation store.Operation) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	now, set, f := l.clock.Now(), &l.Hub.Set, &l.flight
	f.lined = false
	req := &f.request
	if req.Limits != l.encoded {
		req.Groups = nil // its limits were replaced before it left
	}
	req.Limits, req.Update = l.encoded, update
	// Credit for time in line must not be void when it arrives.
	req.Tolerance = max(l.tolerance/2-l.Trip.Usual(), 0)
	if req.Horizon = max(set.Horizon, l.Trip.Lead()); f.dated {
		req.Horizon = 0
	}
	req.Seen, req.Period, req.Alive = l.known.seen, l.known.period, l.known.alive
	if req.State = now.Sub(l.known.asked) >= stateEvery; req.State {
		l.known.asked = now
	}
	req.Field = l.known.field
	req.Channel, req.Lane = l.Hub.Channel, l.Lane
	req.Reports = l.reports.encode(now, req.Reports[:0])
	if l.outage.owes() {
		req.Reports = append(req.Reports, script.Report{Kind: script.ReportLocal, Costs: slices.Clone(l.outage.spent)})
	}
	if keys = l.keys; l.reports.has(script.ReportTune) {
		keys = boxed(req.Keys(l.Key))
	}
	l.known.ended = 0 // its reply is newer
	f.reports, f.spent, f.voided = l.reports, append(f.spent[:0], l.outage.spent...), l.voided
	l.reports = nil
	switch {
	case l.Lost:
		return keys, store.OperationProbe
	case len(req.Groups) > 0:
		return keys, store.OperationReserve
	default:
		return keys, store.OperationTell
	}
}

// take applies what came of a call.
func (l *Limiter) take(in func()) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Landed()
	in()
}

// release wakes the queue before the next call leaves. Some callers come back at once, as
// workers in a loop do, and are in line for that call: otherwise two halves of them would
// take turns, with twice the calls. A caller that made the call itself is not held up.
func (l *Limiter) release(wakes bool) {
	l.Mu.Lock()
	now := l.clock.Now()
	wake, yields := l.Wake, wakes && l.demand.peak > 1 && !l.flight.lent && now >= l.demand.crowded
	l.Mu.Unlock()
	if !yields || wake == nil {
		return
	}
	wake()
	left := time.Now()
	runtime.Gosched()
	if took := time.Since(left); took > shortYield {
		l.Mu.Lock()
		l.demand.crowded = now.Add(yieldsOneIn * took)
		l.Mu.Unlock()
	}
}

// A call is put off for the callers that depart. If that takes longer than shortYield the
// process is busy, and no call is put off for yieldsOneIn times as long.
const (
	shortYield  = time.Millisecond
	yieldsOneIn = 10
)

// finish ends the progress of a call, and does what had to wait for that.
func (l *Limiter) finish(wakes bool) {
	l.release(wakes)
	l.Mu.Lock()
	l.Underway = false
	if l.Lost && !l.Closed {
		l.AskLater(l)
	}
	if !l.demand.waiting {
		l.keep(l.clock.Now(), true) // the callers it was for may have gone
	}
	done := l.Closed && !l.settleAccounts()
	l.Mu.Unlock()
	if done {
		l.Hub.Detach(l.Lane, l)
	}
	if wakes {
		l.WakeQueue()
	}
	l.flush()
}
