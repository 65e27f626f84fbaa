package reserve

import (
	"slices"
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// Reports are sent with the next call, in order.
type reports []pending

// A pending report is one of them. Its span is counted when the call leaves.
type pending struct {
	script.Report
	when throttle.Instant // of a pause: its end
}

// urgent reports whether other replicas need it at once.
func (p *pending) urgent() bool {
	return p.Kind == script.ReportPause || p.Kind == script.ReportResume || p.Kind == script.ReportTune
}

// gives reports whether it gives permits back. It may be dropped: a cost that is never corrected
// ages out of the limits.
func (p *pending) gives() bool {
	return p.Kind == script.ReportRefund || p.Kind == script.ReportStale || p.Kind == script.ReportSettle && p.At > 0
}

// charges reports whether it is a charge for costs above their estimates, which counts when it is
// reported.
func (p *pending) charges() bool { return p.Kind == script.ReportSettle && p.At == 0 }

// maxReports bounds the reports that wait. One more displaces the older of those that give permits
// back. The others are few: of charges, pauses and changes of limits there is one each.
const maxReports = 256

// add appends a report.
func (r *reports) add(p pending, limits *script.EncodedLimits) {
	switch {
	case p.Kind == script.ReportPause || p.Kind == script.ReportResume: // it ends later than those that wait, or ends them
		*r = slices.DeleteFunc(*r, func(q pending) bool { return q.Kind == script.ReportPause || q.Kind == p.Kind })
	case p.charges(): // together with what waits, but no more than the limits can count
		*r = slices.DeleteFunc(*r, func(q pending) bool {
			if !q.charges() {
				return false
			}
			for i, n := range q.Actual {
				p.Actual[i] += n
			}
			return true
		})
		limits.Clamp(p.Actual)
	}
	if *r = append(*r, p); len(*r) > maxReports {
		drop := len(*r) - maxReports/2
		*r = slices.DeleteFunc(*r, func(q pending) bool {
			drops := drop > 0 && q.gives()
			if drops {
				drop--
			}
			return drops
		})
	}
}

// has reports whether one of them is of a kind.
func (r reports) has(kind script.ReportKind) bool {
	return slices.ContainsFunc(r, func(p pending) bool { return p.Kind == kind })
}

// urgent reports whether other replicas need one of them at once.
func (r reports) urgent() bool {
	return slices.ContainsFunc(r, func(p pending) bool { return p.urgent() })
}

// timed returns those without costs, which are in the order of the limits.
func (r reports) timed() reports {
	return slices.DeleteFunc(r, func(p pending) bool { return p.Costs != nil || p.Heirs != nil })
}

// encode appends them as a call that leaves now sends them.
func (r reports) encode(now throttle.Instant, into []script.Report) []script.Report {
	for _, p := range r {
		if p.Kind == script.ReportPause {
			if p.Span = script.Micros(p.when.Sub(now)); p.Span <= 0 {
				continue // it is over
			}
		}
		into = append(into, p.Report)
	}
	return into
}

// report sends a report. A pause, its end and new limits go at once, or with the call after
// the one in progress. All else goes with the next run, or after lingerFor.
func (l *Limiter) report(p pending) {
	l.reports.add(p, l.encoded)
	switch {
	case l.Lost || l.Underway:
	case p.urgent():
		l.start(nil)
	default:
		l.linger.Set(lingerFor)
	}
}

// lingerFor is how long a correction waits for a run that takes it along.
const lingerFor = 20 * time.Millisecond

// flush begins a call for reports, or messages, that no run took along.
func (l *Limiter) flush() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.owes() && !l.Lost && !l.Closed {
		l.start(nil)
	}
}

// owes reports whether there are reports or messages to send.
func (l *Limiter) owes() bool { return len(l.reports) > 0 || l.outage.owes() || l.hurries() }

// credit reports permits that were not used, if that can still matter. A bucket takes back
// permits that are no older than the tolerance, a window those that count in it. For a slow
// bucket an older permit is reported as stale, and its state moves back as far as the charges
// since allow. So a day's permit that was void because this process stood still for a moment
// is not lost for hours. So is each whose callers need other limiters, too: they need another
// instant. A state that began anew has not counted older permits.
func (l *Limiter) credit(p permit) {
	old := p.at < l.clock.Now().Add(-l.tolerance)
	if old && !l.windows && !l.slow || p.of != l.known.seen.Generation {
		return
	}
	costs := slices.Clone(l.encoded.Permits(p.costs))
	for i := range costs {
		costs[i] *= int64(p.count)
	}
	kind := script.ReportRefund
	if old && l.slow || l.demand.joint {
		kind = script.ReportStale
	}
	l.report(pending{Report: script.Report{Kind: kind, At: p.there, Epoch: l.known.seen.Epoch, Costs: costs}})
}

// surrender gives back all permits in hand, at once, because other replicas may need them. The
// last go first: a bucket's state moves back only if every charge since an instant came back.
func (l *Limiter) surrender() {
	for _, p := range slices.Backward(l.hand.all()) {
		l.discard([]permit{p})
	}
	l.settleAccounts()
}
