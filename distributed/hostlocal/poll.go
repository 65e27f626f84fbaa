package hostlocal

import (
	"iter"
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A poll looks at a lane's file while callers wait, because processes do not notify each other. It
// wakes the callers if another process has changed when they may depart.
type poll struct {
	limiter *limiter

	mu      sync.Mutex
	wake    func()
	timer   *time.Timer
	ticks   bool // the timer runs
	waits   bool // callers are in line
	stopped bool
	events  uint64 // as the file had them last
}

const (
	everyPoll  = 50 * time.Millisecond
	everyRetry = time.Millisecond
	everyHold  = 500 * time.Millisecond // while what was learned holds all callers
)

// Notify implements [throttle.Remote].
func (l *limiter) Notify(wake func()) {
	l.poll.mu.Lock()
	defer l.poll.mu.Unlock()
	l.poll.wake = wake
}

// Fetch implements [throttle.Remote].
func (l *limiter) Fetch(_ throttle.Instant, n int, _ iter.Seq[throttle.Request]) {
	p := &l.poll
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits = n > 0; p.waits {
		p.run(everyPoll)
	}
}

// run starts the timer if it does not run.
func (p *poll) run(d time.Duration) {
	switch {
	case p.stopped || p.ticks:
		return
	case p.timer == nil:
		p.timer = time.AfterFunc(d, p.tick)
	default:
		p.timer.Reset(d)
	}
	p.ticks = true
}

// retry makes the limiter write what is pending in a moment.
func (p *poll) retry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticks && p.timer.Stop() {
		p.ticks = false
	}
	p.run(everyRetry)
}

// stop ends the timer for good.
func (p *poll) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped = true; p.timer != nil {
		p.timer.Stop()
	}
}

// tick looks at the file once.
func (p *poll) tick() {
	p.mu.Lock()
	p.ticks = false // retry may set the timer meanwhile
	p.mu.Unlock()
	events, written := p.limiter.glance(time.Now())
	p.limiter.mu.Lock()
	held := p.limiter.holds()
	p.limiter.mu.Unlock()
	p.mu.Lock()
	changed := events != p.events && p.waits
	p.events = events
	switch {
	case !written:
		p.run(everyRetry)
	case p.waits:
		p.run(everyPoll)
	case held:
		p.run(everyHold)
	}
	p.mu.Unlock()
	if changed {
		p.call()
	}
}

// call wakes the callers in line.
func (p *poll) call() {
	p.mu.Lock()
	wake := p.wake
	p.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// holds reports whether what was learned holds all callers. Their queue asks for no permits then,
// but another process may end the hold. The limiter's lock is held.
func (l *limiter) holds() bool {
	k := &l.st.learned
	return k.counted == 1 && throttle.Instant(k.hold) > l.clock(throttle.InstantOf(time.Now())).Add(l.st.ahead)
}

// glance returns how many events the file has, and whether nothing is pending any more.
// It writes what is pending, and that this process still uses the lane.
func (l *limiter) glance(wall time.Time) (events uint64, written bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.hot.file == nil && len(l.pending) == 0 {
		return l.st.events, true
	}
	now := throttle.InstantOf(wall)
	if len(l.pending) > 0 {
		return l.st.events, l.flush(now)
	}
	if since := l.clock(now).Add(l.st.ahead).Sub(l.st.seen(l.id)); since > refresh || since < -stepped {
		_ = l.flush(now)
	}
	heads, _, err := l.hot.heads()
	if err != nil {
		return l.st.events, true
	}
	if events = heads[newest(heads)].events; events != l.st.events {
		_ = l.peek()
	}
	// What was learned here may hold all callers, and no decision would find later messages.
	l.learner.behind(l.st.learned.to)
	return events, true
}
