package distributed

import (
	"context"
	"slices"
	"time"
)

// stateEvery is how often a call asks for the state of the limits too.
const stateEvery = time.Second

// call is one call to the store, with what is asked for in line: none where
// there is only something to tell, or a probe.
func (l *limiter) call(groups []group) {
	l.link.subscribe()
	done, wait := l.breaker().allow()
	if done == nil {
		l.finish(func() { l.fail("open", wait) }, func() {})
		return
	}
	lesson := l.confer()
	req, deadline := l.prepare(groups, lesson)
	v, took, read, err := l.exchange(req, deadline)
	var got reply
	var said heard
	if err == nil && lesson != nil {
		v, said, err = split(v)
	}
	if err == nil {
		got, err = decode(v, len(req.limits.limits), req.state)
		got.ordinal = said.first
	}
	late := took > deadline+max(deadline/2, 20*time.Millisecond)
	cause := causeOf(err)
	if cause == "timeout" && late {
		done(errStalled)
	} else {
		done(err)
	}
	l.link.told(cause)
	var events []string
	l.finish(func() {
		l.stats.Calls++
		switch {
		case err == nil:
			events = l.receive(req, got, took, read)
		case late && cause == "timeout" && !l.out.lost:
			l.miss(req, cause) // this process stood still; the next call tells
		default:
			l.miss(req, cause)
			l.fail(cause, 0)
		}
	}, func() {
		if err == nil && lesson != nil {
			l.heed(said, got.count())
		}
	})
	for _, event := range events {
		l.store.logger().Warn(event, "lane", l.name, "namespace", l.store.namespace)
	}
}

// breaker returns the one of the node: of a Cluster each lane has its own, for
// its nodes fail one by one.
func (l *limiter) breaker() *breaker {
	if l.link.node != nil {
		return l.link.node
	}
	return l.trips
}

// miss takes in that a call was not answered. Where the script may have run all
// the same its permits are lost, and what it told is told again only where twice
// is on the strict side: what gives permits back is not.
func (l *limiter) miss(req *request, cause string) {
	l.stats.Failures++
	l.learning.missed(executed(cause))
	told := l.flight.reports
	if executed(cause) {
		for _, g := range req.groups {
			l.stats.Unknown += uint64(g.count)
		}
		told = slices.DeleteFunc(told, func(p pending) bool { return p.kind == reportRefund || p.kind == reportSettle && !p.overspent() })
	}
	if req.limits != l.encoded {
		told = keepTimed(told)
	}
	l.reports = append(told, l.reports...)
	l.flight.reports = nil
}

// prepare makes the request of a call that leaves now.
func (l *limiter) prepare(groups []group, lesson *lesson) (req *request, deadline time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.now()
	req = &l.flight.request
	// Credit for time in line must not be void when it arrives.
	req.tolerance = max(l.tolerance/2-l.trip.usual(), 0)
	req.horizon, req.bounded = max(l.store.set.horizon, l.trip.lead()), true
	req.seen, req.period, req.alive = l.seen, l.period, l.alive
	req.channel, req.lane, req.lesson = channelName(l.store.namespace), l.lane, lesson
	if l.flight.limits != l.encoded {
		groups = nil // they were replaced before it left
	}
	req.limits, req.groups = l.encoded, groups
	req.reports = l.takeReports(now, req.reports[:0])
	l.flight.reports, l.flight.spent, l.reports = l.reports, append(l.flight.spent[:0], l.out.spent...), nil
	if req.state = now.Sub(l.asked) >= stateEvery; req.state {
		l.asked = now
	}
	l.flight.voided, l.flight.keys = l.voided, l.keys
	if slices.ContainsFunc(req.reports, func(r report) bool { return r.kind == reportTune }) {
		l.flight.keys = req.keys(l.key)
	}
	deadline = l.trip.deadline(&l.store.set)
	if !l.met || l.out.lost || !l.link.own {
		// It dials, or knows no deadline: callers wait no longer than for any other.
		l.patience(deadline)
		deadline = l.store.set.firstDeadline
	}
	return req, deadline
}

// patience has callers go by the policy for a loss where the call under way,
// which may take longer, has not ended by then.
func (l *limiter) patience(d time.Duration) {
	l.flight.number++
	this := l.flight.number
	if l.out.lost {
		return
	}
	l.slow = time.AfterFunc(d, func() {
		l.mu.Lock()
		if l.flight.underway && this == l.flight.number && !l.closed {
			l.lose("slow")
		}
		l.mu.Unlock()
		l.awaken()
	})
}

// exchange runs the script once and tells how long that took, and when the reply
// was read.
func (l *limiter) exchange(req *request, deadline time.Duration) (v any, took time.Duration, read time.Time, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	l.flight.args = req.args(l.flight.args[:0])
	sent := time.Now()
	v, err = l.link.run(ctx, l.flight.keys, l.flight.args)
	read = time.Now()
	return v, read.Sub(sent), read, err
}

// finish ends a call: it takes in what came of it, and then, with no lock held, what
// was learned; it wakes the queue, and calls again where there is something to tell.
func (l *limiter) finish(take, heed func()) {
	l.mu.Lock()
	if l.slow != nil {
		l.slow.Stop()
		l.slow = nil
	}
	take()
	l.mu.Unlock()
	heed()
	l.mu.Lock()
	l.flight.underway = false
	if !l.waiting && len(l.hand) > 0 {
		l.surrender() // those it was for have gone
	}
	wake, parted := l.wake, false
	if l.closed {
		parted = len(l.reports) == 0 || l.out.lost || !l.start(nil)
	}
	l.mu.Unlock()
	if parted {
		l.store.part(l)
	}
	if wake != nil {
		wake()
	}
	l.mu.Lock()
	if (len(l.reports) > 0 || l.hurries()) && !l.out.lost && !l.closed {
		l.start(nil)
	}
	l.mu.Unlock()
}

// fail begins an outage, or goes on with it. The next call is a probe, put off
// longer each time: a failure that only woke the queue would be asked again at
// once.
func (l *limiter) fail(cause string, wait time.Duration) {
	if cause != "open" || !l.out.lost { // the breaker is open for the cause that is known
		l.lose(cause)
	}
	const first = 10 * time.Millisecond
	if wait == 0 {
		wait = first << min(l.failures, 6)
		if lasting(cause) {
			wait = max(wait, l.store.set.breakFor)
		}
	}
	l.failures++
	if l.closed {
		return
	}
	if l.probe == nil {
		l.probe = time.AfterFunc(wait, l.search)
	} else {
		l.probe.Reset(wait)
	}
}

// search probes a store that did not answer.
func (l *limiter) search() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && l.out.lost {
		l.start(nil)
	}
}
