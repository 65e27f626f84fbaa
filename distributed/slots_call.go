package distributed

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir/throttle"
)

// start begins a call in the background, and reports whether one is in progress.
func (f *slots) start() bool {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && !f.closed {
		return false
	}
	f.told.underway = true
	s.calling.Go(f.call)
	return true
}

// call is one call to the store.
func (f *slots) call() {
	f.link.subscribe()
	f.node = f.link.nodeOf(f.key, f.node)
	done := f.node.allow()
	if done == nil {
		f.land(func(now time.Time) { f.failed(now, "open") })
		return
	}
	args, deadline, slow := f.prepare()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	left := time.Now()
	v, err := f.link.run(ctx, slotsScript, slotsSource, []string{f.key}, args)
	cancel()
	if slow != nil {
		slow.Stop()
	}
	var got leaseReply
	if err == nil {
		got, err = decodeLease(v)
	}
	took, cause := time.Since(left), causeOf(err)
	stalled := cause == "timeout" && took > deadline+max(deadline/2, 20*time.Millisecond)
	if stalled {
		done(errStalled)
	} else {
		done(err)
	}
	f.link.ended(cause)
	f.called(throttle.OperationLease, left, took, cause)
	f.land(func(now time.Time) {
		f.stats.Calls++
		switch {
		case err == nil:
			f.receive(&got, now, left, took)
		case stalled && !f.lost:
			f.stats.Failures++ // the next call tells
		default:
			f.stats.Failures++
			f.failed(now, cause)
		}
	})
}

// callTime is how long a replica that was called for may take to come. Then what was
// meant for it is another's.
const callTime = time.Second

// slotsNews begins the news that call for replicas of a lane. No lane's word does.
const slotsNews = "/flights"

// prepare makes the arguments of a call that leaves now, and gives back the slots that
// this replica does not keep. Those in line wait no longer for a call that dials than
// for any other: slow is the timer for that, if it runs.
func (f *slots) prepare() (args []any, deadline time.Duration, slow *time.Timer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, set, t := time.Now(), &f.store.set, &f.told
	f.lease.keep(f.keeps(now))
	wants := f.wants(now)
	t.number, t.at, t.wants, t.summoned = t.number+1, now, wants, false
	t.since, t.peak = now, wants
	args = []any{
		f.id, t.number, f.most, micros(set.lease), f.lease.has, max(wants, f.flying), micros(callTime),
		channelName(f.store.namespace), slotsNews + " " + f.lane,
	}
	deadline = f.trip.deadline(set)
	if !t.met || f.lost || !f.link.own {
		number := t.number
		slow = time.AfterFunc(deadline, func() { f.slow(number) })
		deadline = set.firstDeadline
	}
	return args, deadline, slow
}

// slow has those in line go by the policy for a loss while a call takes long.
func (f *slots) slow(number int64) {
	f.mu.Lock()
	wake := f.wake
	if f.told.underway && f.told.number == number && !f.closed {
		f.lose("slow")
	}
	f.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// lose has the policy for a loss hold.
func (f *slots) lose(cause string) { f.lost, f.stats.Cause = true, cause }

// failed takes in that a call was not answered, and puts the next one off.
func (f *slots) failed(now time.Time, cause string) {
	if cause != "open" || !f.lost { // the breaker is open for the cause that is known
		f.lose(cause)
	}
	again := f.store.set.breakFor
	if lasting(cause) {
		again *= 10
	}
	f.retry = now.Add(again + rand.N(again/2))
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
	take(time.Now())
	wake := f.wake
	f.mu.Unlock()
	if wake != nil {
		wake() // those who may depart do so before anything is given back
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told.underway = false
	if !f.closed {
		f.consider(time.Now())
	} else if !f.sayGoodbye() {
		f.store.leave(f)
	}
}

// decodeLease reads a reply.
func decodeLease(v any) (got leaseReply, err error) {
	words, err := integers(v)
	if err != nil {
		return got, err
	}
	if len(words) != 7 {
		return got, senseless("%d numbers", len(words))
	}
	for i, n := range words {
		if n < 0 || i < 6 && n > mostSlots || n > micros(longestPause) {
			return got, senseless("a lease of %d", words)
		}
	}
	return leaseReply{
		has: int(words[0]), sure: int(words[1]), extra: int(words[2]),
		contended: words[3] != 0, fleet: int(words[4]), replicas: int(words[5]), ends: time.Duration(words[6]) * time.Microsecond,
	}, nil
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
