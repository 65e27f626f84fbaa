package distributed

import (
	"context"
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// stateEvery is how often a call asks for the state of the limits too.
const stateEvery = time.Second

// call is one call to the store, with what is asked for in line: none where
// there is only something to tell, or a probe.
func (l *limiter) call(groups []group) {
	l.link.subscribe()
	done, wait := l.breaker().allow()
	if done == nil {
		l.finish(func() { l.fail("open", wait) })
		return
	}
	req, deadline := l.prepare(groups)
	v, took, err := l.exchange(req, deadline)
	var got reply
	if err == nil {
		got, err = decode(v, len(req.limits.limits), req.state)
	}
	late := took > deadline+max(deadline/2, 20*time.Millisecond)
	cause := causeOf(err)
	if cause == "timeout" && late {
		done(errStalled)
	} else {
		done(err)
	}
	l.link.told(cause)
	l.finish(func() {
		l.stats.Calls++
		switch {
		case err == nil:
			l.receive(req, got, took)
		case late && cause == "timeout" && !l.out.lost:
			l.stats.Failures++ // this process stood still; the next call tells
			l.unknown(req)
		default:
			l.stats.Failures++
			if executed(cause) {
				l.unknown(req)
			}
			l.fail(cause, 0)
		}
	})
}

// breaker returns the one of the node: of a Cluster each lane has its own, for
// its nodes fail one by one.
func (l *limiter) breaker() *breaker {
	if l.link.node != nil {
		return l.link.node
	}
	return l.trips
}

// unknown counts the permits of a run that may have been granted.
func (l *limiter) unknown(req *request) {
	for _, g := range req.groups {
		l.stats.Unknown += uint64(g.count)
	}
}

// prepare makes the request of a call that leaves now.
func (l *limiter) prepare(groups []group) (req *request, deadline time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.now()
	req = &l.asks
	// Credit for time in line must not be void when it arrives.
	req.tolerance = max(l.tolerance/2-l.trip.usual(), 0)
	req.horizon = max(l.store.set.horizon, l.trip.lead())
	req.seen, req.period = l.seen, l.period
	req.channel, req.lane = channelName(l.store.namespace), l.lane
	req.limits, req.groups = l.encoded, groups
	req.reports = l.takeReports(now, req.reports[:0])
	l.sent, l.sentSpent, l.reports = l.reports, append(l.sentSpent[:0], l.out.spent...), nil
	if req.state = now.Sub(l.asked) >= stateEvery; req.state {
		l.asked = now
	}
	l.sentVoided, l.sentKeys = l.voided, l.keys
	if slices.ContainsFunc(req.reports, func(r report) bool { return r.kind == reportTune }) {
		l.sentKeys = req.keys(l.key)
	}
	deadline = l.trip.deadline(&l.store.set)
	if !l.met || l.out.lost {
		// It dials: callers wait for it no longer than for any other.
		l.patience(deadline)
		deadline = l.store.set.firstDeadline
	}
	return req, deadline
}

// patience has callers go by the policy for a loss where the call under way,
// which may take longer, has not ended by then.
func (l *limiter) patience(d time.Duration) {
	l.calls++
	this := l.calls
	if l.out.lost {
		return
	}
	l.slow = time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.calling || this != l.calls || l.closed {
			return
		}
		l.lose("slow")
		if wake := l.wake; wake != nil {
			go wake() // it may ask this limiter
		}
	})
}

// exchange runs the script once and tells how long that took.
func (l *limiter) exchange(req *request, deadline time.Duration) (any, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	l.args = req.args(l.args[:0])
	sent := time.Now()
	v, err := l.link.run(ctx, l.sentKeys, l.args)
	return v, time.Since(sent), err
}

// finish ends a call: it takes in what came of it, wakes the queue, and calls
// again where there is something to tell.
func (l *limiter) finish(take func()) {
	l.mu.Lock()
	l.calling = false
	if l.slow != nil {
		l.slow.Stop()
		l.slow = nil
	}
	take()
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
	if len(l.reports) > 0 && !l.out.lost && !l.closed {
		l.start(nil)
	}
	l.mu.Unlock()
}

// receive takes in a reply.
func (l *limiter) receive(req *request, got reply, took time.Duration) {
	now := l.clock.now()
	usual := l.trip.usual()
	first := !l.met
	l.met = true
	l.trip.saw(took, first || l.out.lost)
	if l.out.lost {
		l.find()
	}
	for i, n := range l.sentSpent {
		l.out.spent[i] -= n
	}
	l.sent = nil
	l.clock.learn(got.now, now, took)
	l.alive, l.period = got.alive, got.period
	l.share, l.differs = got.share, got.differs
	if got.lost {
		l.store.logger().Warn("weir: the state of shared limits was lost", "lane", l.name, "namespace", l.store.namespace)
	}
	l.enter(got.seen)
	if got.paused > got.now {
		l.paused = max(l.paused, l.clock.here(got.paused))
	}
	if req.limits != l.encoded {
		return // the limits were replaced meanwhile
	}
	granted := l.granted(req, got)
	// A reply that lay in the socket while this process stood still looks
	// fresh where no other was seen; later ones are judged permit by permit.
	stale := first && took > l.tolerance+l.store.set.deadline/2 || !first && took > l.tolerance+max(usual, l.store.set.deadline)
	if l.sentVoided != l.voided || got.seen.epoch < l.seen.epoch || stale {
		l.drop(granted)
	} else {
		for _, p := range granted {
			l.hand.hold(p)
		}
	}
	for i, next := range got.next {
		l.next[i] = 0
		if next > got.now {
			l.next[i] = l.clock.here(next)
		}
	}
	if req.state {
		l.told, l.toldAt = got.limits, l.clock.here(got.now)
	}
}

// The rate in force, in thousandths of the configured one: all of it, and what a
// refusal leaves until the store has told.
const (
	fullShare = 1000
	cutShare  = fullShare * throttle.Cut
)

// granted returns the permits of a reply by the queue's clock.
func (l *limiter) granted(req *request, got reply) []permit {
	var out []permit
	g, left := 0, 0
	for _, p := range got.permits {
		for count := p.count; count > 0; {
			if left == 0 {
				if g == len(req.groups) {
					return out // more than was asked for
				}
				left = req.groups[g].count
				g++
			}
			n := min(count, left)
			out = append(out, permit{l.clock.here(p.at), n, req.groups[g-1].costs})
			count, left = count-n, left-n
		}
	}
	return out
}

// enter voids what is of an older epoch.
func (l *limiter) enter(seen echo) {
	same := seen.generation == l.seen.generation
	if same && seen.epoch < l.seen.epoch {
		return
	}
	if same && seen.epoch > l.seen.epoch {
		l.drop(l.hand.before(throttle.Never))
	}
	l.seen = seen
}

// fail notes that a call failed. What it was to tell is kept. The next one is a
// probe, put off longer each time: a failure that only woke the queue would be
// asked again at once.
func (l *limiter) fail(cause string, wait time.Duration) {
	l.reports = append(l.sent, l.reports...)
	l.sent = nil
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
