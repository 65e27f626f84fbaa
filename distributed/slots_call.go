package distributed

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
)

// begin begins a call in the background, once there is a connection for it, and reports
// whether one is in progress.
func (f *slots) begin() bool {
	lined, ok := f.start(f)
	if lined && f.waiting > 0 {
		f.waitAtMost(f, f.trip.deadline(&f.store.set))
	}
	return ok
}

// Call implements [conn.Caller].
func (f *slots) Call() {
	began, deadline, done := f.depart(f)
	if done == nil {
		f.land(func(time.Time) { f.outlast("open") })
		return
	}
	v, o := f.run(script.Slots, append(conn.Command(nil, []any{f.key}), f.prepare()...), began, deadline)
	var got script.LeaseReply
	var senseless error
	if o.err == nil {
		got, senseless = script.DecodeLease(v)
	}
	f.ended(&o, senseless, store.OperationLease, done)
	f.land(func(now time.Time) {
		f.stats.Calls++
		if o.err == nil {
			f.receive(&got, now, o.read.Add(-o.took), o.took)
			return
		}
		f.stats.Failures++
		if f.failed(&o) {
			f.outlast(o.cause)
		}
	})
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
		f.id, t.number, f.most, script.Micros(set.lease), f.lease.has, max(wants, f.flying), script.Micros(callTime),
		f.store.channel, slotsNews + " " + f.lane,
	}
}

// lose has the policy for a loss hold.
func (f *slots) lose(cause string) { f.lost, f.cause = true, cause }

// outlast takes in that a call was not answered.
func (f *slots) outlast(cause string) {
	if cause != "open" || !f.lost { // the breaker is open for the cause that is known
		f.lose(cause)
	}
}

// askLater puts the next call of a loss off. Once the node is lost it is the node that
// asks. No call is in progress, or a node that is back would not find the lane.
func (f *slots) askLater(now time.Time) {
	if f.away = f.node.Await(f); f.away {
		return
	}
	again := f.store.set.breakFor
	if conn.Lasting(f.cause) {
		again *= 10
	}
	f.retry = now.Add(again + rand.N(again/2))
}

// Probe asks a store that did not answer whether it does now.
func (f *slots) Probe() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away && !f.closed && !f.underway {
		f.begin()
	}
}

// Restore takes in that the node answers again. If nobody is in line or in flight the
// store need not know of this replica.
func (f *slots) Restore() (debt conn.Caller) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || !f.away || f.underway {
		return nil
	}
	f.away, f.retry = false, time.Time{}
	if f.flying+f.waiting > 0 {
		f.begin()
	} else {
		f.lost, f.cause = false, ""
		f.consider(time.Now())
	}
	return nil
}

// receive takes in the reply to a call that left at an instant.
func (f *slots) receive(got *script.LeaseReply, now, left time.Time, took time.Duration) {
	f.trip.saw(took, !f.met || f.lost)
	f.met, f.lost, f.retry, f.cause = true, false, time.Time{}, ""
	f.lease.renew(got, now, left, f.store.set.lease)
	f.stats.Fleet, f.stats.Processes = got.Fleet, got.Replicas
}

// land ends a call: it takes in what came of it, wakes the queue, and calls again if
// that is due.
func (f *slots) land(take func(now time.Time)) {
	f.mu.Lock()
	f.landed()
	take(time.Now())
	wake := f.wake
	f.mu.Unlock()
	if wake != nil {
		wake() // those who may depart do so before anything is given back
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.underway = false
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
