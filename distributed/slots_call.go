package distributed

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir/internal/store"
)

// start begins a call in the background, once there is a connection for it, and reports
// whether one is in progress.
func (f *slots) start() bool {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && !f.closed {
		return false
	}
	f.told.underway = true
	if !f.node.enter(f) && f.waiting > 0 {
		f.waitAtMost(f.trip.deadline(&s.set))
	}
	return true
}

// call is one call to the store.
func (f *slots) call() {
	f.link.subscribe()
	began, deadline := time.Now(), f.longestCall()
	done := f.approach().allow()
	if done == nil {
		f.land(func(time.Time) { f.failed("open") })
		return
	}
	args := f.prepare()
	ctx, cancel := context.WithDeadline(context.Background(), began.Add(deadline))
	left := time.Now()
	v, err := f.link.run(ctx, leases, append(command(nil, []any{f.key}), args...))
	cancel()
	var got leaseReply
	if err == nil {
		got, err = decodeLease(v)
	}
	took, cause := time.Since(left), causeOf(err)
	after := time.Since(began)
	stalled := stoodStill(cause, after, deadline)
	if stalled {
		done(errStalled)
	} else {
		done(err)
	}
	f.link.ended(f.node, cause, err)
	f.called(store.OperationLease, left, took, cause)
	f.land(func(now time.Time) {
		f.stats.Calls++
		if err == nil {
			f.receive(&got, now, left, took)
			return
		}
		f.stats.Failures++
		if !f.trip.excuses(stalled, after, deadline, &f.store.set) || f.lost {
			f.failed(cause)
		}
	})
}

// longestCall returns how long a call may take that begins now.
func (f *slots) longestCall() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	set := &f.store.set
	deadline := f.trip.deadline(set)
	if f.told.met && !f.lost && f.link.own {
		return deadline
	}
	// It dials, or knows no deadline: those in line wait no longer than for any other.
	f.waitAtMost(deadline)
	return set.firstDeadline
}

// approach returns the node that holds the key.
func (f *slots) approach() *node {
	before := f.node // no other call writes it
	n := f.link.nodeOf(f.key, before)
	if n != before {
		f.mu.Lock()
		f.node = n
		f.mu.Unlock()
		before.left(f)
	}
	return n
}

// callTime is how long a replica that was called for may take to come. Then what was
// meant for it is another's.
const callTime = time.Second

// slotsNews begins the news that call for replicas of a lane. No lane's word does.
const slotsNews = "/flights"

// prepare makes the arguments of a call that leaves now, and gives back the slots that
// this replica does not keep.
func (f *slots) prepare() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, set, t := time.Now(), &f.store.set, &f.told
	f.lease.keep(f.keeps(now))
	wants := f.wants(now)
	t.number, t.at, t.wants, t.summoned = t.number+1, now, wants, false
	t.since, t.peak = now, wants
	return []any{
		f.id, t.number, f.most, micros(set.lease), f.lease.has, max(wants, f.flying), micros(callTime),
		f.store.channel, slotsNews + " " + f.lane,
	}
}

// waitAtMost has those in line go by the policy for a loss if the call in progress takes
// longer, though it may still be answered.
func (f *slots) waitAtMost(d time.Duration) {
	f.told.landed()
	if f.lost {
		return
	}
	this := f.told.waits
	f.told.slow = time.AfterFunc(d, func() {
		f.mu.Lock()
		wake := f.wake
		if f.told.underway && f.told.waits == this && !f.closed {
			f.lose("slow")
		}
		f.mu.Unlock()
		if wake != nil {
			wake()
		}
	})
}

// landed ends the wait for a call, also one whose timer has just rung.
func (t *told) landed() {
	t.waits++
	if t.slow != nil {
		t.slow.Stop()
		t.slow = nil
	}
}

// lose has the policy for a loss hold.
func (f *slots) lose(cause string) { f.lost, f.stats.Cause = true, cause }

// failed takes in that a call was not answered.
func (f *slots) failed(cause string) {
	if cause != "open" || !f.lost { // the breaker is open for the cause that is known
		f.lose(cause)
	}
}

// askLater puts the next call of a loss off. Once the node is lost it is the node that
// asks. No call is in progress, or a node that is back would not find the lane.
func (f *slots) askLater(now time.Time) {
	if f.away = f.node.await(f); f.away {
		return
	}
	again := f.store.set.breakFor
	if lasting(f.stats.Cause) {
		again *= 10
	}
	f.retry = now.Add(again + rand.N(again/2))
}

// probe asks a store that did not answer whether it does now.
func (f *slots) probe() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away && !f.closed && !f.told.underway {
		f.start()
	}
}

// restore takes in that the node answers again. If nobody is in line or in flight the
// store need not know of this replica.
func (f *slots) restore() (debt asker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || !f.away || f.told.underway {
		return nil
	}
	f.away, f.retry = false, time.Time{}
	if f.flying+f.waiting > 0 {
		f.start()
	} else {
		f.lost, f.stats.Cause = false, ""
		f.consider(time.Now())
	}
	return nil
}

// receive takes in the reply to a call that left at an instant.
func (f *slots) receive(got *leaseReply, now, left time.Time, took time.Duration) {
	f.trip.saw(took, !f.told.met || f.lost)
	f.told.met, f.lost, f.retry, f.stats.Cause = true, false, time.Time{}, ""
	f.lease.renew(got, now, left, f.store.set.lease)
	f.stats.Fleet, f.stats.Processes = got.fleet, got.replicas
}

// land ends a call: it takes in what came of it, wakes the queue, and calls again if
// that is due.
func (f *slots) land(take func(now time.Time)) {
	f.mu.Lock()
	f.told.landed()
	take(time.Now())
	wake := f.wake
	f.mu.Unlock()
	if wake != nil {
		wake() // those who may depart do so before anything is given back
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told.underway = false
	if f.closed {
		if !f.sayGoodbye() {
			f.store.leave(f)
		}
		return
	}
	now := time.Now()
	if f.away = false; f.lost {
		f.askLater(now)
	}
	f.consider(now)
}

// summon calls the replicas of a lane whose names stand in the news.
func (k *link) summon(news string) {
	lane, names, _ := strings.Cut(news, " ")
	k.store.mu.Lock()
	called := slices.Clone(k.store.flights[lane])
	k.store.mu.Unlock()
	for _, f := range called {
		if strings.Contains(" "+names+" ", " "+f.id+" ") {
			f.summoned()
		}
	}
}
