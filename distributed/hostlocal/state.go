package hostlocal

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A state is what processes share of a lane, beside the state of its limiter.
type state struct {
	wrote  throttle.Instant // of the last write; no process decides at an earlier one
	ahead  time.Duration    // of the wall clock, which was stepped back that far
	events uint64           // changes that let callers depart sooner, or delay them

	members []member // processes that used the lane recently
	claims  []claim  // limits that processes enforced recently
	learned learned
}

// A member is a process that used the lane at an instant.
type member struct {
	id   uint64
	seen throttle.Instant
}

// A claim is a list of limits, a line each, as [throttle.Limit.String] writes them, and
// when a process last enforced them.
type claim struct {
	limits string
	seen   throttle.Instant
}

const (
	refresh     = 2 * time.Second  // interval of a process's notes that it uses the lane
	lately      = 10 * time.Second // a process without a note for that long has ended
	mostMembers = 256
	mostClaims  = 16
)

// claimOf returns limits as they stand in a claim.
func claimOf(limits []throttle.Limit) string {
	lines := make([]string, len(limits))
	for i, l := range limits {
		lines[i] = l.String()
	}
	return strings.Join(lines, "\n")
}

// parse returns the limits of a claim. A line that another version wrote is left out.
func (c *claim) parse() (limits []throttle.Limit) {
	for line := range strings.Lines(c.limits) {
		if l, err := throttle.ParseLimit(strings.TrimSuffix(line, "\n")); err == nil {
			limits = append(limits, l)
		}
	}
	return limits
}

// join notes that a process uses the lane and enforces limits, and drops those not seen recently.
func (s *state) join(now throttle.Instant, id uint64, limits string) {
	since := now.Add(-lately)
	s.members = slices.DeleteFunc(s.members, func(m member) bool { return m.id == id || m.seen < since })
	s.members = append(s.members, member{id, now})
	if len(s.members) > mostMembers {
		s.members = slices.Delete(s.members, 0, 1)
	}
	s.claims = slices.DeleteFunc(s.claims, func(c claim) bool { return c.limits != limits && c.seen < since })
	if i := slices.IndexFunc(s.claims, func(c claim) bool { return c.limits == limits }); i >= 0 {
		s.claims[i].seen = now
		return
	}
	if len(s.claims) == mostClaims {
		s.claims = slices.Delete(s.claims, 0, 1)
	}
	s.claims = append(s.claims, claim{limits, now})
}

// seen returns the last note that a process uses the lane.
func (s *state) seen(id uint64) throttle.Instant {
	for _, m := range s.members {
		if m.id == id {
			return m.seen
		}
	}
	return 0
}

// append writes the state. The events are in the header of the file.
func (s *state) append(b []byte) []byte {
	b = numbers(b, int64(s.wrote), int64(s.ahead), int64(len(s.members)))
	for _, m := range s.members {
		b = numbers(b, int64(m.id), int64(m.seen))
	}
	b = numbers(b, int64(len(s.claims)))
	for _, c := range s.claims {
		b = numbers(b, int64(c.seen), int64(len(c.limits)))
		b = append(b, c.limits...)
	}
	for _, n := range s.learned.numbers() {
		b = numbers(b, *n)
	}
	return b
}

// readState reads a state, and returns the rest of the bytes.
func readState(b []byte, events uint64, old *state) (s state, rest []byte, ok bool) {
	r := reader{b: b}
	s = state{wrote: throttle.Instant(r.next()), ahead: time.Duration(r.next()), events: events}
	members := r.count(2)
	s.members = make([]member, 0, members+1)
	for range members {
		s.members = append(s.members, member{uint64(r.next()), throttle.Instant(r.next())})
	}
	for i := range r.count(2) {
		seen := throttle.Instant(r.next())
		text := r.bytes(r.count(1))
		if i < len(old.claims) && old.claims[i].limits == string(text) { // nearly always
			s.claims = append(s.claims, claim{old.claims[i].limits, seen})
			continue
		}
		s.claims = append(s.claims, claim{string(text), seen})
	}
	for _, n := range s.learned.numbers() {
		*n = r.next()
	}
	return s, r.b, !r.bad
}

// numbers writes numbers.
func numbers(b []byte, all ...int64) []byte {
	for _, n := range all {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// A reader reads numbers and bytes.
type reader struct {
	b   []byte
	bad bool // the bytes are invalid
}

func (r *reader) next() int64 {
	n, read := binary.Varint(r.b)
	if read <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[read:]
	return n
}

// count reads the number of elements that follow, each of at least size bytes.
func (r *reader) count(each int) int {
	n := r.next()
	if n < 0 || n > int64(len(r.b)/each) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *reader) bytes(n int) []byte {
	n = min(n, len(r.b))
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}
