package distributed_test

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// suffer applies a fault to the connections of the first k replicas for d. It returns when the
// fleet has recovered, with what the vendor may see because of it.
func (f *fleet) suffer(k int, d time.Duration, fault, heal func()) []spell {
	f.t.Helper()
	from := now()
	fault()
	if all := k == f.replicas(); !all || d == 0 {
		f.pass(d)
		heal()
		return []spell{f.cutOff(k, from, f.back())}
	}
	dark := f.darkens()
	f.pass(max(d-dark.Sub(from), d/2))
	healed := now()
	heal()
	spells := []spell{f.cutOff(k, from, f.back()), f.unshared(dark, healed)}
	f.judgeDark(dark, healed)
	return spells
}

// darkens returns when all replicas have lost the store and spent their permits in hand. That
// depends on the machine: a run covers the duration of a call, so half a second per call leaves
// permits for half a second.
func (f *fleet) darkens() throttle.Instant {
	f.t.Helper()
	went := make([]bool, len(f.members))
	took := await(f.t, "the replicas to go on by themselves", func() bool {
		for i, r := range f.members {
			went[i] = went[i] || distributed.Alone(r.limiter)
		}
		return !slices.Contains(went, false)
	})
	f.t.Logf("all by themselves after %v", took.Round(time.Millisecond))
	return now()
}

// cutOff returns what the vendor may see if the first k replicas were cut off from one instant
// until the last recovered at another.
func (f *fleet) cutOff(k int, from, back throttle.Instant) spell {
	below := k
	if k == f.replicas() {
		below = math.MaxInt
	}
	return spell{from: from, to: back, rate: float64(k) * f.lossRate(), more: float64(k * f.lossBurst()), below: below}
}

// unshared returns what the vendor must not see if no replica shared permits between two instants;
// the bucket filled meanwhile.
func (f *fleet) unshared(from, to throttle.Instant) spell {
	whole := rateOf(f.plan.Limits[0])
	filled := min(float64(burstOf(f.plan.Limits[0])), whole*to.Sub(from).Seconds())
	return spell{from: from, to: to, rate: -whole, more: filled}
}

// lossRate is what a replica grants per second after losing the store.
func (f *fleet) lossRate() float64 {
	whole := rateOf(f.plan.Limits[0])
	switch f.plan.OnLoss {
	case distributed.FailOpen:
		return whole
	case distributed.FailClosed:
		return 0
	default:
		return cmp.Or(f.plan.Share, distributed.DefaultShare) * whole / float64(f.replicas())
	}
}

// lossBurst is what it grants at once.
func (f *fleet) lossBurst() int {
	switch f.plan.OnLoss {
	case distributed.FailOpen:
		return burstOf(f.plan.Limits[0])
	case distributed.FailClosed:
		return 0
	default:
		return 1
	}
}

// lost returns what the vendor may see if the limit's state was lost between two instants: the
// burst once more. Counts of windows cannot be restored, so runs held for the next window add to
// it: one per replica, or two near a window's end.
func (f *fleet) lost(from, to throttle.Instant) spell {
	limit, n := f.plan.Limits[0], f.replicas()
	f.forgot = true
	s := spell{from: from, to: to, more: float64(burstOf(limit))}
	if counts(limit) {
		run := min(f.plan.Callers/2, int(rateOf(limit)*distributed.DefaultHorizon.Seconds())/n)
		s.more += float64(2 * n * max(run, 1))
	}
	return s
}

// each applies do to the connections of the replicas.
func each(links []*redistest.Proxy, do func(p *redistest.Proxy)) func() {
	return func() {
		for _, p := range links {
			do(p)
		}
	}
}

func (f *fleet) do(args ...string) any {
	f.t.Helper()
	reply, err := f.server.Do(args...)
	if err != nil {
		f.t.Errorf("%q: %v", args, err)
	}
	return reply
}
