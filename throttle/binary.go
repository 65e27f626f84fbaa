package throttle

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"
)

// The limiters that Local makes can be stored, with their limits.
var (
	_ encoding.BinaryAppender    = (*set)(nil)
	_ encoding.BinaryUnmarshaler = (*set)(nil)
)

// layout is the version of the stored form. It changes if a field does.
const layout = 2

// errState is the error for bytes that are not a state.
var errState = errors.New("throttle: bytes are no state of a limiter")

// AppendBinary implements [encoding.BinaryAppender]: the limits and all used permits. The error is
// always nil.
func (s *set) AppendBinary(b []byte) ([]byte, error) {
	s.lock()
	defer s.unlockAsFound()
	c := &coder{b: append(append(b, layout), s.storedLimits()...)}
	c.number(s.pausedTo.Load(), int64(s.tunedAt), asNumber(s.settled))
	for _, rule := range s.rules {
		rule.encode(c)
	}
	return c.b, nil
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. The limiter enforces the limits in the
// data from then on. It returns an error for invalid data, and the limiter is then unchanged.
func (s *set) UnmarshalBinary(data []byte) error {
	if len(data) == 0 || data[0] != layout {
		return errState
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &coder{b: data[1:]}
	limits := s.limits
	rest, same := bytes.CutPrefix(c.b, s.storedLimits()) // nearly always
	if same {
		c.b = rest
	} else if limits = readLimits(c); c.bad {
		return errState
	}
	paused, tuned, settled := Instant(c.next()), Instant(c.next()), c.next()
	rules := make([]rule, len(limits))
	for i, l := range limits {
		rules[i] = newRule(l.Enforced(), s.wall)
		rules[i].decode(c)
	}
	if c.bad || len(c.b) > 0 || tuned == Never {
		return errState
	}
	if s.quick.Store(nil); !same {
		s.install(minInstant, limits)
	}
	s.rules, s.tunedAt, s.settled = rules, tuned, settled != 0
	s.pausedTo.Store(int64(paused))
	return nil
}

// storedLimits returns the stored form of the limits, which is made once. The lock is held.
func (s *set) storedLimits() []byte {
	if s.stored == nil {
		c := &coder{}
		appendLimits(c, s.limits)
		s.stored = c.b
	}
	return s.stored
}

// appendLimits writes limits.
func appendLimits(c *coder, limits []Limit) {
	c.number(int64(len(limits)))
	for _, l := range limits {
		c.number(int64(l.Algorithm), int64(l.Permits), int64(l.Per), int64(l.Burst))
		c.text(l.Unit)
		c.text(string(l.Align))
		c.text(l.Name)
		c.text(string(l.Keep))
		c.text(string(l.Reserve))
	}
}

// readLimits reads limits that were resolved before they were written.
func readLimits(c *coder) []Limit {
	limits := make([]Limit, c.count(5))
	for i := range limits {
		limits[i] = Limit{
			Algorithm: Algorithm(c.within(0, int64(len(algorithmWords)-1))),
			Permits:   int(c.next()), Per: time.Duration(c.next()), Burst: int(c.next()),
			Unit: c.word(), Align: Align(c.word()), Name: c.word(),
			Keep: Part(c.word()), Reserve: Part(c.word()),
		}
	}
	resolved, err := Resolve(limits...)
	c.bad = c.bad || err != nil || !slices.Equal(resolved, limits)
	return limits
}

func (b *bucket) encode(c *coder) {
	c.point(b.tat)
	c.number(int64(b.held), int64(len(b.returned)))
	for _, d := range b.returned {
		c.number(int64(d.at), d.n)
	}
	c.number(int64(b.slack.from), int64(b.slack.n))
	for i := range b.slack.n {
		c.number(int64(b.slack.at(i).at), b.slack.at(i).ahead)
	}
}

func (b *bucket) decode(c *coder) {
	b.tat = c.pointOf(b.pace.den)
	b.held = time.Duration(c.within(0, math.MaxInt64))
	for range c.count(2) { // no more than maxReturned are kept
		b.returned.add(Instant(c.next()), c.within(1, maxCount))
	}
	b.slack = slack{from: Instant(c.next()), n: int(c.within(0, int64(len(b.slack.lows))))}
	for i := range b.slack.n {
		b.slack.lows[i] = low{Instant(c.next()), c.next()}
	}
}

func (f *fixed) encode(c *coder) {
	w := &f.window
	c.number(int64(w.start), int64(w.end), int64(w.mark.end), int64(w.mark.ahead), asNumber(w.mark.set))
	c.number(w.used, w.debt, int64(w.before), w.usedBefore, w.first)
	f.spacing.encode(c)
}

func (f *fixed) decode(c *coder) {
	f.window = window{
		start: Instant(c.next()), end: Instant(c.next()),
		mark: mark{Instant(c.next()), time.Duration(c.next()), c.next() != 0},
		used: c.within(0, maxCount), debt: c.within(0, maxCount), before: Instant(c.next()), usedBefore: c.within(0, maxCount),
		first: c.within(-maxCount, maxCount),
	}
	f.bound()
	f.spacing.decode(c)
}

func (g *log) encode(c *coder) {
	c.number(int64(g.gone), int64(len(g.live())-g.empty))
	last := Instant(0)
	for _, r := range g.live() {
		if r.n > 0 {
			c.number(int64(r.at-last), r.n)
			last = r.at
		}
	}
	g.spacing.encode(c)
}

func (g *log) decode(c *coder) {
	g.gone = Instant(c.next())
	g.runs = make([]run, c.count(2))
	last := Instant(0)
	for i := range g.runs {
		last += Instant(c.next())
		g.runs[i] = run{last, c.within(1, maxCount)}
		c.bad = c.bad || i > 0 && last <= g.runs[i-1].at
		g.kept = counted(g.kept, g.runs[i].n)
	}
	c.bad = c.bad || g.kept > g.permits
	g.spacing.decode(c)
}

func (s *sliding) encode(c *coder) {
	c.number(int64(s.counts.start), s.counts.this, s.counts.before, s.counts.ago)
	s.spacing.encode(c)
}

func (s *sliding) decode(c *coder) {
	s.counts = counts{Instant(c.next()), c.within(0, maxCount), c.within(0, maxCount), c.within(0, maxCount)}
	s.spacing.decode(c)
}

func (s *spacing) encode(c *coder) {
	if s.line == nil {
		c.number(0)
		return
	}
	c.number(1, int64(s.line.limit.Burst), s.line.pace.unit, s.line.pace.den)
	c.point(s.line.tat)
	c.number(int64(s.until))
}

func (s *spacing) decode(c *coder) {
	if c.next() == 0 {
		return
	}
	l := Limit{Algorithm: AlgorithmLeakyBucket, Burst: int(c.within(0, maxCount))}
	p := pace{c.within(1, math.MaxInt64), c.within(1, math.MaxInt64)}
	s.line = bucketOf(l, p)
	s.line.tat = c.pointOf(p.den)
	s.until = Instant(c.next())
}

// A coder writes numbers and texts, or reads them.
type coder struct {
	b   []byte
	bad bool // the data are invalid
}

func (c *coder) number(all ...int64) {
	for _, n := range all {
		c.b = binary.AppendVarint(c.b, n)
	}
}

func (c *coder) text(s string) {
	c.number(int64(len(s)))
	c.b = append(c.b, s...)
}

func (c *coder) point(x point) { c.number(int64(x.at), x.frac) }

// next reads a number; zero if there is none.
func (c *coder) next() int64 {
	n, read := binary.Varint(c.b)
	if read <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[read:]
	return n
}

// within reads a number between two.
func (c *coder) within(least, most int64) int64 {
	n := c.next()
	if n < least || n > most {
		c.bad = true
		return least
	}
	return n
}

// count reads the number of elements that follow, each of at least size bytes.
func (c *coder) count(each int) int64 {
	n := c.next()
	if n < 0 || n > int64(len(c.b)/each) {
		c.bad = true
		return 0
	}
	return n
}

func (c *coder) word() string {
	n := c.count(1)
	if c.bad {
		return ""
	}
	s := string(c.b[:n])
	c.b = c.b[n:]
	return s
}

// pointOf reads a point whose fraction is in 1/den.
func (c *coder) pointOf(den int64) point {
	return point{Instant(c.within(int64(minInstant), int64(last.at))), c.within(0, max(den-1, 0))}
}

func asNumber(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
