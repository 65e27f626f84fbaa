package distributed

import (
	"runtime"
	"slices"
	"time"

	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
)

// Call implements [conn.Caller].
func (l *limiter) Call() {
	finished := false
	defer func() {
		if !finished {
			l.abandon()
		}
	}()
	began, deadline, done := l.Depart(l)
	if done == nil {
		finished = true
		l.land(func() { l.outlast("open") }, l.logShare)
		return
	}
	ended := false
	defer func() {
		if !ended {
			done(conn.ErrStalled)
		}
	}()
	update := l.propose()
	req := l.prepare(update)
	f := &l.flight
	f.words = req.Args(conn.Command(f.words[:0], f.keys))
	v, o := l.Run(script.Decide, f.words, began, deadline)
	var got script.Reply
	var senseless error
	if o.Err == nil {
		got, senseless = req.Decode(v)
	}
	ended = true
	l.Ended(&o, senseless, f.purpose, done)
	finished = true
	var events []store.Event
	l.land(func() {
		l.stats.Calls++
		if o.Err == nil {
			events = l.receive(req, got, o.Took, o.Read)
			return
		}
		l.missed(req, o.Cause)
		if l.Failed(&o) {
			l.outlast(o.Cause)
		}
	}, func() {
		l.strayed(events)
		switch {
		case o.Err != nil:
			l.logShare()
		case update != nil:
			l.apply(&got)
		}
	})
}

// abandon ends a call in which something panicked: a watcher, or a function of the
// client's options. The caller to whom it was lent has the panic, and leaves the line: by
// that the queue asks again, for the others.
func (l *limiter) abandon() {
	l.take(func() { l.missed(&l.flight.request, "panic") })
	l.finish(false)
}

// missed takes in that a call was not answered. If the script may have run all the
// same, the permits it was to bring are lost.
func (l *limiter) missed(req *script.Request, cause string) {
	ran := conn.Executed(cause)
	l.stats.Failures++
	l.learning.missed(ran)
	if ran {
		for _, g := range req.Groups {
			l.stats.Unknown += uint64(g.Count)
		}
	}
	again := l.flight.failed(ran)
	if req.Limits != l.encoded {
		again = again.timed()
	}
	l.reports = append(again, l.reports...)
	l.reports.bound(l.encoded)
}

// prepare makes the request of a call that leaves now.
func (l *limiter) prepare(update *script.Update) *script.Request {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	now, set, f := l.clock.Now(), &l.Hub.Set, &l.flight
	f.lined = false
	if f.limits != l.encoded {
		f.groups = nil // they were replaced before it left
	}
	req := &f.request
	req.Limits, req.Groups, req.Update = l.encoded, f.groups, update
	// Credit for time in line must not be void when it arrives.
	req.Tolerance = max(l.tolerance/2-l.Trip.Usual(), 0)
	req.Horizon, req.Bounded = max(set.Horizon, l.Trip.Lead()), true
	req.Seen, req.Period, req.Alive, req.State = l.known.seen, l.known.period, l.known.alive, l.known.asks(now)
	req.Field = l.known.field
	req.Channel, req.Lane = l.Hub.Channel, l.Lane
	req.Reports = l.reports.encode(now, req.Reports[:0])
	if l.outage.owes() {
		req.Reports = append(req.Reports, script.Report{Kind: script.ReportLocal, Costs: slices.Clone(l.outage.spent)})
	}
	if f.keys = l.keys; l.reports.has(script.ReportTune) {
		f.keys = boxed(req.Keys(l.Key))
	}
	f.purpose = l.operation()
	f.leave(l.reports, l.outage.spent, l.voided)
	l.reports = nil
	return req
}

// land ends a call: it takes in what came of it, and then, with no lock held, what
// was learned; it wakes the queue, and calls again if there is something to report.
func (l *limiter) land(take, then func()) {
	defer l.finish(true)
	l.take(take)
	then()
}

// take takes in what came of a call.
func (l *limiter) take(in func()) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Landed()
	in()
}

// release lets those go who can, before the next call leaves. Some come back at once, as
// workers in a loop do, and stand in line for it then: without that two halves of them
// would take turns, with twice the calls. Nobody is held up by it who made the call itself.
func (l *limiter) release(wakes bool) {
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

// A call is put off for those who are let go. If that takes longer than shortYield the
// process has too much to do, and no call is put off for so many times as long.
const (
	shortYield  = time.Millisecond
	yieldsOneIn = 10
)

// finish has no call be in progress any more, and does what had to wait for that.
func (l *limiter) finish(wakes bool) {
	l.release(wakes)
	l.Mu.Lock()
	l.Underway = false
	if l.Lost && !l.Closed {
		l.askLater()
	}
	if !l.demand.waiting {
		l.keep(l.clock.Now()) // those it was for may have gone
	}
	wake, done := l.Wake, l.Closed && !l.settleAccounts()
	l.Mu.Unlock()
	if done {
		l.Hub.Detach(l.Lane, l)
	}
	if wake != nil && wakes {
		wake()
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if (len(l.reports) > 0 || l.hurries()) && !l.Lost && !l.Closed {
		l.start(nil)
	}
}
