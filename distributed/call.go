package distributed

import (
	"runtime"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/store"
)

// call is one call to the store.
func (l *limiter) call() {
	landed := false
	defer func() {
		if !landed {
			l.abandon()
		}
	}()
	l.link.subscribe()
	began, deadline := time.Now(), l.longestCall()
	done := l.approach().allow()
	if done == nil {
		landed = true
		l.land(func() { l.failed("open") }, l.logShare)
		return
	}
	lesson := l.confer()
	req := l.prepare(lesson)
	o := l.exchange(req, began, deadline, done)
	l.link.ended(l.node, o.cause, o.err)
	l.called(l.flight.purpose, o.read.Add(-o.took), o.took, o.cause)
	landed = true
	var events []store.Event
	l.land(func() {
		l.stats.Calls++
		if o.err == nil {
			events = l.receive(req, o.reply, o.took, o.read)
			return
		}
		l.missed(req, o.cause)
		if !l.trip.excuses(o.stalled, o.read.Sub(began), deadline, &l.store.set) || l.outage.on {
			l.failed(o.cause)
		}
	}, func() {
		l.strayed(events)
		switch {
		case o.err != nil:
			l.logShare()
		case lesson != nil:
			l.heed(&o.reply)
		}
	})
}

// abandon ends a call in which something panicked: a watcher, or a function of the
// client's options. The caller to whom it was lent has the panic, and leaves the line: by
// that the queue asks again, for the others.
func (l *limiter) abandon() {
	l.take(func() { l.missed(&l.flight.request, "panic") })
	l.landed(false)
}

// longestCall returns how long a call may take that begins now.
func (l *limiter) longestCall() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	set := &l.store.set
	deadline := l.trip.deadline(set)
	if l.known.met && !l.outage.on && l.link.own {
		return deadline
	}
	// It dials, or knows no deadline: callers wait no longer than for any other.
	l.waitAtMost(deadline)
	return set.firstDeadline
}

// approach returns the node that holds the lane's keys.
func (l *limiter) approach() *node {
	before := l.node // no other call writes it
	n := l.link.nodeOf(l.key, before)
	if n != before {
		l.mu.Lock()
		l.node = n
		l.mu.Unlock()
		before.left(l)
	}
	return n
}

// missed takes in that a call was not answered. If the script may have run all the
// same, the permits it was to bring are lost.
func (l *limiter) missed(req *request, cause string) {
	ran := executed(cause)
	l.stats.Failures++
	l.learning.missed(ran)
	if ran {
		for _, g := range req.groups {
			l.stats.Unknown += uint64(g.count)
		}
	}
	again := l.flight.failed(ran)
	if req.limits != l.encoded {
		again = again.timed()
	}
	l.reports = append(again, l.reports...)
	l.reports.bound(l.encoded)
}

// prepare makes the request of a call that leaves now.
func (l *limiter) prepare(lesson *lesson) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, set, f := l.clock.now(), &l.store.set, &l.flight
	f.lined = false
	if f.limits != l.encoded {
		f.groups = nil // they were replaced before it left
	}
	req := &f.request
	req.limits, req.groups, req.lesson = l.encoded, f.groups, lesson
	// Credit for time in line must not be void when it arrives.
	req.tolerance = max(l.tolerance/2-l.trip.usual(), 0)
	req.horizon, req.bounded = max(set.horizon, l.trip.lead()), true
	req.seen, req.period, req.alive, req.state = l.known.seen, l.known.period, l.known.alive, l.known.asks(now)
	req.field = l.known.field
	req.channel, req.lane = l.store.channel, l.lane
	req.reports = l.reports.encode(now, req.reports[:0])
	if l.outage.owes() {
		req.reports = append(req.reports, report{kind: reportLocal, costs: slices.Clone(l.outage.spent)})
	}
	if f.keys = l.keys; l.reports.tell(reportTune) {
		f.keys = boxed(req.keys(l.key))
	}
	f.purpose = l.operation()
	f.leave(l.reports, l.outage.spent, l.voided)
	l.reports = nil
	return req
}

// waitAtMost begins an outage if the call in progress takes longer, though it may
// still be answered: callers then go by the policy for it.
func (l *limiter) waitAtMost(d time.Duration) {
	l.flight.landed()
	if l.outage.on {
		return
	}
	this := l.flight.number
	l.flight.slow = time.AfterFunc(d, func() {
		l.mu.Lock()
		if l.flight.underway && this == l.flight.number && !l.closed {
			l.beginOutage("slow")
		}
		l.mu.Unlock()
		l.wakeQueue()
	})
}

// An outcome is what came of one run of the script.
type outcome struct {
	reply   reply
	took    time.Duration
	read    time.Time // when the reply was read
	err     error
	cause   string // of the error, in a word; "": there is none
	stalled bool   // this process stood still meanwhile
}

// exchange runs the script once, in what is left of a call, and tells the node's breaker
// how that ended.
func (l *limiter) exchange(req *request, began time.Time, deadline time.Duration, done func(error)) (o outcome) {
	verdict := errStalled
	defer func() { done(verdict) }()
	f := &l.flight
	f.words = req.args(command(f.words[:0], f.keys))
	sent := time.Now()
	ctx := l.node.deadline(began.Add(deadline), deadline-sent.Sub(began))
	v, err := l.link.run(ctx, decides, f.words)
	o.read = time.Now()
	l.node.done(ctx, err)
	o.took = o.read.Sub(sent)
	if err == nil {
		o.reply, err = req.decode(v)
	}
	o.err, o.cause = err, causeOf(err)
	if o.stalled = stoodStill(o.cause, o.read.Sub(began), deadline); !o.stalled {
		verdict = err
	}
	return o
}

// land ends a call: it takes in what came of it, and then, with no lock held, what
// was learned; it wakes the queue, and calls again if there is something to tell.
func (l *limiter) land(take, heed func()) {
	defer l.landed(true)
	l.take(take)
	heed()
}

// take takes in what came of a call.
func (l *limiter) take(in func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flight.landed()
	in()
}

// release lets those go who can, before the next call leaves. Some come back at once, as
// workers in a loop do, and stand in line for it then: without that two halves of them
// would take turns, with twice the calls. Nobody is held up by it who made the call itself.
func (l *limiter) release(wakes bool) {
	l.mu.Lock()
	now := l.clock.now()
	wake, yields := l.wake, wakes && l.demand.peak > 1 && !l.flight.lent && now >= l.demand.crowded
	l.mu.Unlock()
	if !yields || wake == nil {
		return
	}
	wake()
	left := time.Now()
	runtime.Gosched()
	if took := time.Since(left); took > shortYield {
		l.mu.Lock()
		l.demand.crowded = now.Add(yieldsOneIn * took)
		l.mu.Unlock()
	}
}

// A call is put off for those who are let go. If that takes longer than shortYield the
// process has too much to do, and no call is put off for so many times as long.
const (
	shortYield  = time.Millisecond
	yieldsOneIn = 10
)

// landed has no call be in progress any more, and does what had to wait for that.
func (l *limiter) landed(wakes bool) {
	l.release(wakes)
	l.mu.Lock()
	l.flight.underway = false
	if l.outage.on && !l.closed {
		l.askLater()
	}
	if !l.demand.waiting {
		l.keep(l.clock.now()) // those it was for may have gone
	}
	wake, done := l.wake, l.closed && !l.sayGoodbye()
	l.mu.Unlock()
	if done {
		l.store.detach(l)
	}
	if wake != nil && wakes {
		wake()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if (len(l.reports) > 0 || l.hurries()) && !l.outage.on && !l.closed {
		l.start(nil)
	}
}
