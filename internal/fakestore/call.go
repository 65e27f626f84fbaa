package fakestore

import (
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// most bounds a run, whatever the line.
const most = 128

// Fetch implements [throttle.Remote]. Once what is in hand is about to run out
// it calls for more, for at most half of the line.
func (l *limiter) Fetch(now throttle.Instant, n int, line iter.Seq[throttle.Request]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if l.closed || l.fetching || now < l.again || len(l.limits) == 0 {
		return
	}
	asked, covered := l.uncovered(now, line)
	lead := 2 * l.store.server.roundTrip
	plenty := len(l.hand) > 0 && l.hand[len(l.hand)-1].at > now.Add(lead)
	if len(asked) == 0 || plenty && covered > 0 {
		return
	}
	asked = asked[:min(len(asked), max(1, n/2))]
	l.asked, l.sent = now, time.Now()
	turned := l.turned
	l.fetching = l.store.start(func() { l.call(asked, turned) })
}

// uncovered returns what in line nothing in hand is for, as far as a run goes,
// and how many before that it covers.
func (l *limiter) uncovered(now throttle.Instant, line iter.Seq[throttle.Request]) (asked []throttle.Request, covered int) {
	hand := l.hand
	l.hand = slices.Clone(hand)
	defer func() { l.hand = hand }()
	for r := range line {
		if i := l.find(now, r); i >= 0 {
			l.hand = slices.Delete(l.hand, i, i+1)
			covered++
		} else if !asksNothing(r) {
			asked = append(asked, throttle.Request{N: r.N, Each: slices.Clone(r.Each)})
		}
		if len(asked) == most {
			break
		}
	}
	return asked, covered
}

// call fetches a run.
func (l *limiter) call(asked []throttle.Request, turned int) {
	var got run
	err := l.store.exchange(func() (err error) {
		got, err = l.store.server.reserve(l.key, asked)
		return err
	})
	if errors.Is(err, errEnded) {
		return
	}
	l.news(func() {
		l.fetching = false
		l.calls++
		l.cause = ""
		switch took := time.Since(l.sent); {
		case err != nil:
			l.fail(err, asked)
		case took > l.store.server.roundTrip+l.tolerance || turned != l.turned || got.epoch < l.epoch:
			l.void += len(got.permits) // it lay too long, or is of before a pause
		default:
			l.receive(got)
		}
	})
}

// news takes in what came from the server, and wakes the queue.
func (l *limiter) news(take func()) {
	l.mu.Lock()
	take()
	wake := l.wake
	l.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// fail puts the next call off, longer each time: a failure that only woke the
// queue would be asked again at once.
func (l *limiter) fail(err error, asked []throttle.Request) {
	const first, longest = 50 * time.Millisecond, time.Second
	l.failed++
	if l.cause = "error"; errors.Is(err, errTimeout) {
		l.cause = "timeout"
		l.unknown += len(asked)
	}
	l.again = l.now().Add(min(first<<min(l.failures, 10), longest))
	l.failures++
}

// receive dates a run by the queue's clock, from its receipt: never early.
func (l *limiter) receive(got run) {
	l.failures, l.again, l.replicas = 0, 0, got.replicas
	l.enter(got.epoch)
	ahead := l.now().Sub(got.now)
	for _, p := range got.permits {
		l.hold(permit{p.at.Add(ahead), p.request})
	}
	l.next = got.next.Add(ahead)
}

// enter voids what is of an older epoch.
func (l *limiter) enter(epoch int) {
	if epoch > l.epoch {
		l.epoch = epoch
		l.drop()
	}
}

// hear is called by the server, under its lock, with news that arrives half a
// round trip later.
func (l *limiter) hear(n news) {
	l.store.start(func() {
		if !l.store.sleep(l.store.server.roundTrip / 2) {
			return
		}
		l.news(func() {
			l.enter(n.epoch)
			if n.paused > 0 {
				l.paused = max(l.paused, l.now().Add(n.paused.Sub(n.now)))
			}
			if n.limits != nil {
				l.limits, l.tolerance = n.limits, n.tolerance
			}
		})
	})
}

// Reconcile implements [throttle.Limiter]. A pause holds here at once, and
// elsewhere when the news has come.
func (l *limiter) Reconcile(now throttle.Instant, f throttle.Fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case f.Refused && f.Until > l.paused:
		l.paused = f.Until
		l.drop()
		l.turned++
	case f.Refused && f.Until == 0:
		l.cut = true
	case f.Refused || !l.cut:
		return
	}
	l.tell(now, func(ahead time.Duration) error {
		f.Departed = f.Departed.Add(-ahead)
		if f.Until > 0 {
			f.Until = f.Until.Add(-ahead)
		}
		return l.store.server.reconcile(l.key, f)
	})
}

// Tune implements [throttle.Limiter]. The error tells of the limits; they hold
// once the server has them.
func (l *limiter) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell(now, func(time.Duration) error { return l.store.server.tune(l.key, resolved) })
	return nil
}

// Settle implements [throttle.Limiter].
func (l *limiter) Settle(now, at throttle.Instant, r, actual throttle.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell(now, func(ahead time.Duration) error {
		l.store.server.correct(l.key, at.Add(-ahead), r, actual)
		return nil
	})
}

// tell sends the server word in the background. It acts there with how far the
// queue's instants are ahead of the server's.
func (l *limiter) tell(now throttle.Instant, act func(ahead time.Duration) error) {
	sent := time.Now()
	l.store.start(func() {
		// What is lost on the way is lost: the vendor will say it again.
		_ = l.store.exchange(func() error {
			return act(now.Add(time.Since(sent)).Sub(l.store.server.now()))
		})
	})
}
