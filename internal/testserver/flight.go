package testserver

import "time"

// A flight is the state of a limit of concurrency: the permits of the requests
// that are being answered.
type flight struct {
	limit Limit
	used  int
}

func (f *flight) wait(_ time.Duration, cost int) time.Duration {
	if f.used+cost <= f.limit.Permits {
		return 0
	}
	return untold
}

func (f *flight) spend(_ time.Duration, cost int) { f.used += cost }

// done is also called for requests that the limit did not count, because it was set while they were
// answered.
func (f *flight) done(cost int) { f.used = max(0, f.used-cost) }

func (f *flight) standing(time.Duration) Standing {
	return Standing{Limit: f.limit, Remaining: max(0, f.limit.Permits-f.used)}
}

func (f *flight) resume(old meter) {
	if o, ok := old.(*flight); ok {
		f.used = o.used
	}
}
