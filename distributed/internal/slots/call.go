package slots

import (
	"math/rand/v2"
	"time"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
)

// begin begins a call in the background, once there is a connection for it, and reports
// whether one is in progress.
func (f *Lane) begin() bool {
	lined, ok := f.Start(f)
	if lined && f.waiting > 0 {
		f.WaitAtMost(f, f.Trip.Deadline(&f.Hub.Set))
	}
	return ok
}

// Call implements [conn.Caller].
func (f *Lane) Call() {
	began, deadline, done := f.Depart(f)
	if done == nil {
		f.land(func(time.Time) { f.outlast("open") })
		return
	}
	v, o := f.Run(script.Slots, append(conn.Command(nil, []any{f.Key}), f.prepare()...), began, deadline)
	var got script.LeaseReply
	var senseless error
	if o.Err == nil {
		got, senseless = script.DecodeLease(v)
	}
	f.Ended(&o, senseless, store.OperationLease, done)
	f.land(func(now time.Time) {
		f.stats.Calls++
		if o.Err == nil {
			f.receive(&got, now, o.Read.Add(-o.Took), o.Took)
			return
		}
		f.stats.Failures++
		if f.Failed(&o) {
			f.outlast(o.Cause)
		}
	})
}

// callTime is how long a replica that was called for may take to come. Then what was
// meant for it is another's.
const callTime = time.Second

// prepare makes the arguments of a call that leaves now, and gives back the slots that
// this replica does not keep.
func (f *Lane) prepare() []any {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	now, set, t := time.Now(), &f.Hub.Set, &f.sent
	f.lease.keep(f.keeps(now))
	wants := f.wants(now)
	t.number, t.at, t.wants, t.summoned = t.number+1, now, wants, false
	t.since, t.peak = now, wants
	return []any{
		f.id, t.number, f.most, script.Micros(set.Lease), f.lease.has, max(wants, f.flying), script.Micros(callTime),
		f.Hub.Channel, call.SlotsMessage + " " + f.Lane,
	}
}

// Lose has the policy for a loss hold.
func (f *Lane) Lose(cause string) { f.Lost, f.Cause = true, cause }

// outlast takes in that a call was not answered.
func (f *Lane) outlast(cause string) {
	if cause != "open" || !f.Lost { // the breaker is open for the cause that is known
		f.Lose(cause)
	}
}

// askLater puts the next call of a loss off. Once the node is lost it is the node that
// asks. No call is in progress, or a node that is back would not find the lane.
func (f *Lane) askLater(now time.Time) {
	if f.away = f.Node.Await(f); f.away {
		return
	}
	again := f.Hub.Set.BreakFor
	if conn.Lasting(f.Cause) {
		again *= 10
	}
	f.retry = now.Add(again + rand.N(again/2))
}

// Probe asks a store that did not answer whether it does now.
func (f *Lane) Probe() {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.away && !f.Closed && !f.Underway {
		f.begin()
	}
}

// Restore takes in that the node answers again. If nobody is in line or in flight the
// store need not know of this replica.
func (f *Lane) Restore() (debt conn.Caller) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Closed || !f.away || f.Underway {
		return nil
	}
	f.away, f.retry = false, time.Time{}
	if f.flying+f.waiting > 0 {
		f.begin()
	} else {
		f.Lost, f.Cause = false, ""
		f.consider(time.Now())
	}
	return nil
}

// receive takes in the reply to a call that left at an instant.
func (f *Lane) receive(got *script.LeaseReply, now, left time.Time, took time.Duration) {
	f.Trip.Saw(took, !f.Met || f.Lost)
	f.Met, f.Lost, f.retry, f.Cause = true, false, time.Time{}, ""
	f.lease.renew(got, now, left, f.Hub.Set.Lease)
	f.stats.Fleet, f.stats.Processes = got.Fleet, got.Replicas
}

// land ends a call: it takes in what came of it, wakes the queue, and calls again if
// that is due.
func (f *Lane) land(take func(now time.Time)) {
	f.Mu.Lock()
	f.Landed()
	take(time.Now())
	wake := f.Wake
	f.Mu.Unlock()
	if wake != nil {
		wake() // those who may depart do so before anything is given back
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Underway = false
	if f.Closed {
		if !f.returnAll() {
			f.Hub.Detach(call.SlotsMessage+f.Lane, f)
		}
		return
	}
	now := time.Now()
	if f.away = false; f.Lost {
		f.askLater(now)
	}
	f.consider(now)
}
