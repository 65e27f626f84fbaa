package testserver

import "time"

// flight counts the permits of the requests being answered.
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

// done also sees requests that a limit set while they flew has not counted.
func (f *flight) done(cost int) { f.used = max(0, f.used-cost) }

func (f *flight) standing(time.Duration) Standing {
	return Standing{Limit: f.limit, Remaining: max(0, f.limit.Permits-f.used)}
}

func (f *flight) resume(old meter) {
	if o, ok := old.(*flight); ok {
		f.used = o.used
	}
}
