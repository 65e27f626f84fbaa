package reserve

import (
	"slices"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/script"
)

// A flight is the call in progress, of which there is one at most, and the memory
// that each call uses again. While underway, its request and words belong to the goroutine
// of the call, which needs no lock for them.
type flight struct {
	lined   bool           // it stands in the node's line
	lends   bool           // the next call is lent to the caller it is for
	lent    bool           // this call was
	dated   bool           // it asks for the permit of an instant at which another limiter lets its caller go
	request script.Request // without groups it only reports something, or probes
	words   []any          // of the command
	permits []permit
	costs   []int64 // of the last request in line; never written, because permits have it too
	reports reports // that it sends
	spent   []int64 // of each limit, in an outage, that it reports; nil: of limits that were replaced
	voided  int     // of the limiter when it left: if that has grown, what it brings is void
}

// ahead reports whether it asks for permits ahead of callers.
func (f *flight) ahead() bool {
	return !f.dated && len(f.request.Groups) > 0 && f.request.Groups[0].Age < 0
}

// failed returns the reports to send again because no reply came. If the script may have
// run, those are the ones that are strict if they are sent twice: not those that give permits
// back.
func (f *flight) failed(executed bool) (again reports) {
	again, f.reports = f.reports, nil
	if executed {
		again = slices.DeleteFunc(again, func(p pending) bool { return p.gives() })
	}
	return again
}

// granted returns the permits of a reply, dated by the queue's clock. The reply
// counts permits in the order of the groups in line:
//
//	asked:    2 of cost 1, 1 of cost 5
//	replied:  3 at 10:00:00.100
//	granted:  2 of cost 1 and 1 of cost 5, both at 10:00:00.100
func (f *flight) granted(got *script.Reply, c *call.Clock) []permit {
	out := f.permits[:0]
	req, ahead, g, left, ordinal := &f.request, f.dated || f.ahead(), 0, 0, got.Learned.First
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
			granted := permit{at: c.Here(p.At), there: p.At, count: n, costs: req.Groups[g-1].Costs, of: got.Seen.Generation, ahead: ahead}
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
