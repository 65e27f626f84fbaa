package distributed

import (
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A pending report is word for the store that travels with the next call.
type pending struct {
	report
	when throttle.Instant // of a pause: its end; of a cut: the departure of the refused call
}

// overspent reports whether a settlement charges more, and gives nothing back.
func (p *pending) overspent() bool {
	for i, n := range p.costs {
		if p.actual[i] < n {
			return false
		}
	}
	return true
}

// maxReports bounds what waits to be told. Beyond it the oldest correction is
// lost: the vendor will say it again, or time heals it.
const maxReports = 256

// report tells the store: a pause, its end, a cut and other limits at once, or with the
// call after the one under way.
func (l *limiter) report(p pending) {
	if len(l.reports) == maxReports {
		i := slices.IndexFunc(l.reports, func(p pending) bool { return p.kind == reportRefund || p.kind == reportSettle })
		l.reports = slices.Delete(l.reports, max(i, 0), max(i, 0)+1)
	}
	l.reports = append(l.reports, p)
	switch {
	case l.out.lost || l.flight.underway:
	case p.kind == reportPause || p.kind == reportResume || p.kind == reportCut || p.kind == reportTune:
		l.start(nil)
	case l.tells == nil:
		l.tells = time.AfterFunc(linger, l.tell)
	default:
		l.tells.Reset(linger)
	}
}

// linger is how long a correction waits for a run that takes it along.
const linger = 20 * time.Millisecond

func (l *limiter) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.reports) > 0 && !l.out.lost && !l.closed {
		l.start(nil)
	}
}

// credit tells the store of permits that nobody used, where that can still
// matter: buckets take back what is not older than the tolerance, windows what
// counts in them. A state that began anew has not counted what was granted
// before.
func (l *limiter) credit(p permit) {
	then, ok := l.clock.there(p.at)
	if !ok || p.of != l.seen.generation || !l.counts && p.at < l.clock.now().Add(-l.tolerance) {
		return
	}
	costs := slices.Clone(p.costs)
	for i := range costs {
		costs[i] *= int64(p.count)
	}
	l.report(pending{report: report{kind: reportRefund, at: then, epoch: l.seen.epoch, costs: costs}})
}

// surrender gives back all that is in hand, the last first, so that the line
// can be shortened.
func (l *limiter) surrender() {
	back := l.hand
	l.hand = nil
	for _, p := range slices.Backward(back) {
		l.drop([]permit{p})
	}
}

// takeReports returns what is to be told with a call that leaves now.
func (l *limiter) takeReports(now throttle.Instant, into []report) []report {
	for _, p := range l.reports {
		r := p.report
		switch r.kind {
		case reportPause:
			if r.span = int64(p.when.Sub(now) / time.Microsecond); r.span <= 0 {
				continue // it is over
			}
		case reportCut:
			r.span = max(int64(now.Sub(p.when)/time.Microsecond), 0)
		}
		into = append(into, r)
	}
	if slices.ContainsFunc(l.out.spent, func(n int64) bool { return n > 0 }) {
		into = append(into, report{kind: reportLocal, costs: slices.Clone(l.out.spent)})
	}
	return into
}

// keepTimed returns the reports that do not name costs by the place of limits.
func keepTimed(reports []pending) []pending {
	return slices.DeleteFunc(reports, func(p pending) bool { return p.costs != nil || p.heirs != nil })
}
