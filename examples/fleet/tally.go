package main

import "cmp"

// A tally is the counts of the processes of a replica, or of all.
type tally struct {
	failed int
	cause  string // of the first failure
	calls  uint64 // to Redis
	void   uint64 // permits not taken in time
	alone  uint64 // permits spent while Redis did not answer
}

// tally returns the tally of all processes of the replica so far. A killed one counts up to its
// last report.
func (r *replica) tally() tally {
	return r.before.plus(tally{
		failed: r.last.Failed,
		cause:  r.last.Cause,
		calls:  r.last.Store.Calls,
		void:   r.last.Store.Void,
		alone:  r.last.Store.Local,
	})
}

func (t tally) plus(o tally) tally {
	return tally{
		failed: t.failed + o.failed,
		cause:  cmp.Or(t.cause, o.cause),
		calls:  t.calls + o.calls,
		void:   t.void + o.void,
		alone:  t.alone + o.alone,
	}
}

// tally returns the tally of all replicas.
func (f *fleet) tally() tally {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sum tally
	for _, r := range f.replicas {
		sum = sum.plus(r.tally())
	}
	return sum
}
