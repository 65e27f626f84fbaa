package slots

import (
	"time"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
)

// begin begins a call in the background, once there is a connection for it, and reports
// whether one is in progress.
func (f *Lane) begin() bool {
	_, ok := f.Start(f, f.waiting > 0)
	return ok
}

// Call implements [conn.Caller]. It applies the outcome, wakes the queue, and calls again if that is
// due.
func (f *Lane) Call() {
	var got script.LeaseReply
	o := f.Make(f, script.Slots, f.prepare, func(v any) (err error) {
		got, err = script.DecodeLease(v)
		return err
	})
	f.Mu.Lock()
	f.Landed()
	if o.Cause != call.Open {
		f.stats.Calls++
	}
	switch {
	case o.Err == nil:
		f.Answered(o.Took)
		f.lease.renew(&got, time.Now(), o.Read.Add(-o.Took), f.Hub.Set.Lease, f.flying)
		f.stats.Fleet, f.stats.Processes = got.Fleet, got.Replicas
	case o.Cause != call.Open:
		f.stats.Failures++
		fallthrough
	default:
		f.Failed(f, &o)
	}
	f.Mu.Unlock()
	f.WakeQueue() // callers depart before slots are given back
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Underway = false
	if f.Closed {
		if !f.returnAll() {
			f.Hub.Detach(call.SlotsMessage+f.Lane, f)
		}
		return
	}
	if f.Lost {
		f.AskLater(f)
	}
	f.consider(time.Now())
}

// callTime is how long a replica that was asked to call may take. Then its slots go to another
// replica.
const callTime = time.Second

// prepare returns the words of a call, and gives back the slots that this replica does not keep.
func (f *Lane) prepare() ([]any, store.Operation) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	now, set, t := time.Now(), &f.Hub.Set, &f.sent
	f.lease.keep(f.keeps(now))
	wants := f.wants(now)
	t.number, t.at, t.wants, t.learned, t.summoned = t.number+1, now, wants, f.learned, false
	t.since, t.peak = now, wants
	return append(conn.Command(nil, []any{f.Key}),
		f.id, t.number, f.most, script.Micros(set.Lease), f.lease.Has, max(wants, f.flying), script.Micros(callTime),
		f.Hub.Channel, call.SlotsMessage+" "+f.Lane, f.learned, int64(f.at)/1000), store.OperationLease
}

// Lose puts the policy for a loss in force.
func (f *Lane) Lose(cause string) { f.Lost, f.Cause = true, cause }

// Probe calls a store that did not answer.
func (f *Lane) Probe() {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Lost && !f.Closed && !f.Underway {
		f.begin()
	}
}

// Restore ends the loss after the node has answered another lane. A replica without callers in line
// or in flight does not call the store.
func (f *Lane) Restore(int) (owes bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Closed || !f.Lost || f.Underway {
		return false
	}
	if f.flying+f.waiting > 0 {
		f.begin()
	} else {
		f.Recover()
		f.consider(time.Now())
	}
	return false
}
