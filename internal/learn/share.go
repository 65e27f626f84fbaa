package learn

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Share leaves a part of a vendor's quotas to other clients. Reports are reduced before anything is learned from them. With a
// share of 0.3, "100 of 100 left" is read as 30 of 30, "80 left" as 10, and "70 left" as 0. So the vendor has 70 left at any
// time, whichever client spent the others. It is safe for concurrent use.
type Share struct {
	mu     sync.Mutex
	quotas map[uint64]*sized
}

// A sized is the readings' evidence of a quota's size.
type sized struct {
	largest float64          // reading
	since   throttle.Instant // when the first one came
	reset   time.Duration    // the longest reported
}

const (
	mostSized = 16              // quotas of a lane, beyond which all are forgotten: vendors have four at most
	patient   = 5 * time.Second // and two windows without more than the kept part left, if the limit is a rate
)

// Reduce reduces quotas that are reported at an instant to a share of them, less than 1.
func (s *Share) Reduce(now throttle.Instant, quotas []Quota, share float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range quotas {
		q := &quotas[i]
		if !q.HasRemaining {
			continue
		}
		whole := s.whole(now, q, share)
		kept := max(0, min((1-share)*whole, whole-1)) // at least one is for the lane
		q.Limit, q.Remaining = max(share*q.Limit, min(q.Limit, 1)), max(0, q.Remaining-kept)
	}
}

// whole returns a quota's size: its limit or, if that is not reported, the largest reading. Some
// vendors report the rate of a bucket as its limit, and never have that many left.
func (s *Share) whole(now throttle.Instant, q *Quota, share float64) float64 {
	key := q.Key()
	t := s.quotas[key]
	if t == nil {
		if s.quotas == nil || len(s.quotas) >= mostSized {
			s.quotas = make(map[uint64]*sized)
		}
		t = &sized{since: now}
		s.quotas[key] = t
	}
	t.largest, t.reset = max(t.largest, q.Remaining), max(t.reset, q.Reset, q.Window)
	if q.HasLimit && (t.largest > (1-share)*q.Limit || now.Sub(t.since) < patient+2*min(t.reset, longestReset)) {
		return q.Limit
	}
	return t.largest
}

const (
	agreed     = 0.1 // width of an estimate that shows the rate, most difference from the previous one, and most error of a slope. Test "ShareIsOfARateThatTwoEstimatesShow"
	mostMissed = 4   // refusals below the share of a rate, after which the rate is searched again
	forgiven   = 30  // X after which a refusal does not count: a refusal every few seconds does. Test "FleetLeavesTheRestToOthers"
)

// part returns the share of a vendor's limit that the lane may take.
func (s *Setting) part() float64 { return min(cmp.Or(s.Share, 1), 1) }

// shared returns the lane's part of a rate, once the vendor's is found. Until then the size of a share is unknown.
func (s *State) shared(rate float64) float64 {
	if s.whole() == 0 {
		return rate
	}
	return rate * s.Setting.part()
}

// whole returns the vendor's rate as refusals show it; zero: it is unknown, or a reported level that rises shows it better.
func (s *State) whole() float64 {
	for i := range s.Ceilings {
		if t := &s.Ceilings[i]; t.binds(s) && t.fills() {
			return 0
		}
	}
	return s.Whole
}

// found notes the vendor's rate, of which the lane takes a share. Two estimates in a row must agree: after a
// first burst of 40 from a bucket of 100/s the first one may be 500/s. Half of that is refused too seldom to be
// corrected. R does not exceed Whole then: a share is seldom refused, so a search beyond it would not end.
func (s *State) found(before float64) {
	if s.Setting.part() < 1 && s.Whole == 0 && s.U <= agreed && math.Abs(s.W-before) <= agreed*s.W {
		s.Whole, s.Missed = s.W*(1-s.U), 0
	}
}

// missed counts a refusal below the share: others took more, or the vendor's rate fell. After some the rate is searched again.
func (s *State) missed() {
	if s.Missed++; s.Missed >= mostMissed {
		s.Whole, s.Missed = 0, 0
	}
}
