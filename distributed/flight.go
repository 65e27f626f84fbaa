package distributed

import (
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/throttle"
)

// A flight is the call in progress, of which there is one at most, and the memory
// that each call uses again. While underway, its request, keys and words belong to
// the goroutine of the call, which needs no lock for them.
type flight struct {
	underway bool
	lined    bool // it stands in the node's line
	lends    bool // the next to start is lent to the caller it is for
	lent     bool // this one was
	ahead    bool // it asks for callers who are still to come
	request  request
	keys     []any
	words    []any // of the command
	permits  []permit
	costs    []int64 // of the last that was asked for; never written, for permits have it too

	groups  []group        // asked for in line: none if it only tells something, or probes
	limits  *encodedLimits // of the lane when it was started, in which its costs are
	reports reports        // that it tells
	spent   []int64        // of each limit, in an outage, that it tells; nil: of limits that were replaced
	purpose store.Operation
	voided  int         // of the limiter when it left: if that has grown, what it brings is void
	number  int         // of waits for it so far
	slow    *time.Timer // from which callers no longer wait for it; nil: none runs
}

// begin makes a flight of requests under the limits in force.
func (f *flight) begin(limits *encodedLimits, groups []group) {
	f.underway, f.lent, f.limits, f.groups = true, false, limits, groups
	f.ahead = len(groups) > 0 && groups[0].age < 0
}

// leave has it tell the reports, and what was spent in an outage.
func (f *flight) leave(told reports, spent []int64, voided int) {
	f.reports, f.spent, f.voided = told, append(f.spent[:0], spent...), voided
}

// landed ends the wait for it, also one whose timer has just rung.
func (f *flight) landed() {
	f.number++
	if f.slow != nil {
		f.slow.Stop()
		f.slow = nil
	}
}

// failed returns what must be told once more because no reply came. If the script
// may have run, that is only what is on the strict side if it is told twice: what
// gives permits back is not.
func (f *flight) failed(executed bool) reports {
	told := f.reports
	f.reports = nil
	if !executed {
		return told
	}
	again := told[:0]
	for _, p := range told {
		if p.kind == reportSettle {
			if more, ok := p.overspend(); ok {
				again = append(again, more)
			}
		} else if p.kind != reportRefund && p.kind != reportStale {
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
func (f *flight) granted(got reply, c *clock) []permit {
	out := f.permits[:0]
	req, g, left, ordinal := &f.request, 0, 0, got.heard.first
	for _, p := range got.permits {
		for count := p.count; count > 0; {
			if left == 0 {
				if g == len(req.groups) {
					f.permits = out
					return out // more than was asked for
				}
				left = req.groups[g].count
				g++
			}
			n := min(count, left)
			granted := permit{at: c.here(p.at), count: n, costs: req.groups[g-1].costs, of: got.seen.generation, ahead: f.ahead}
			if req.lesson != nil {
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
