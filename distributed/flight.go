package distributed

import (
	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/throttle"
)

// A flight is the call in progress, of which there is one at most, and the memory
// that each call uses again. While underway, its request, keys and words belong to
// the goroutine of the call, which needs no lock for them.
type flight struct {
	lined   bool // it stands in the node's line
	lends   bool // the next to start is lent to the caller it is for
	lent    bool // this one was
	ahead   bool // it asks for callers who are still to come
	request script.Request
	keys    []any
	words   []any // of the command
	permits []permit
	costs   []int64 // of the last that was asked for; never written, for permits have it too

	groups  []script.Group        // asked for in line: none if it only reports something, or probes
	limits  *script.EncodedLimits // of the lane when it was started, in which its costs are
	reports reports               // that it sends
	spent   []int64               // of each limit, in an outage, that it reports; nil: of limits that were replaced
	purpose store.Operation
	voided  int // of the limiter when it left: if that has grown, what it brings is void
}

// begin makes a flight of requests under the limits in force.
func (f *flight) begin(limits *script.EncodedLimits, groups []script.Group) {
	f.lent, f.limits, f.groups = false, limits, groups
	f.ahead = len(groups) > 0 && groups[0].Age < 0
}

// leave has it send the reports, and what was spent in an outage.
func (f *flight) leave(sent reports, spent []int64, voided int) {
	f.reports, f.spent, f.voided = sent, append(f.spent[:0], spent...), voided
}

// failed returns what must be sent once more because no reply came. If the script
// may have run, that is only what is on the strict side if it is sent twice: what
// gives permits back is not.
func (f *flight) failed(executed bool) reports {
	sent := f.reports
	f.reports = nil
	if !executed {
		return sent
	}
	again := sent[:0]
	for _, p := range sent {
		if p.Kind == script.ReportSettle {
			if more, ok := p.overspend(); ok {
				again = append(again, more)
			}
		} else if p.Kind != script.ReportRefund && p.Kind != script.ReportStale {
			again = append(again, p)
		}
	}
	return again
}

// granted returns the permits of a reply, dated by the queue's clock. The reply
// counts permits in the order of the groups in line:
//
//	asked:    2 of cost 1, 1 of cost 5
//	replied:  3 at 10:00:00.100
//	granted:  2 of cost 1 and 1 of cost 5, both at 10:00:00.100
func (f *flight) granted(got script.Reply, c *call.Clock) []permit {
	out := f.permits[:0]
	req, g, left, ordinal := &f.request, 0, 0, got.Learned.First
	for _, p := range got.Permits {
		for count := p.Count; count > 0; {
			if left == 0 {
				if g == len(req.Groups) {
					f.permits = out
					return out // more than was asked for
				}
				left = req.Groups[g].Count
				g++
			}
			n := min(count, left)
			granted := permit{at: c.Here(p.At), there: p.At, count: n, costs: req.Groups[g-1].Costs, of: got.Seen.Generation, ahead: f.ahead}
			if req.Update != nil {
				granted.first = ordinal + 1
				ordinal += int64(n)
			}
			out = append(out, granted)
			count, left = count-n, left-n
		}
	}
	f.permits = out
	return out
}

// A demand is the line at this replica, as the limiter sees it.
type demand struct {
	waiting bool
	others  bool             // more than one waits
	peak    int              // the most in line since the last run
	again   throttle.Instant // when to ask once more for what was not granted; zero: at once
	spent   throttle.Instant // nothing is asked for before it ahead of callers
	crowded throttle.Instant // no call is put off before it for those who may come back
	pace    pace
}
