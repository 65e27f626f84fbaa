package limitertest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A source draws whole numbers from 0 up to n-1: a generator, or rapid, which shrinks failures.
type source func(n int64) int64

func (s source) chance(percent int64) bool { return s(100) < percent }

// between draws from low to high, both included.
func (s source) between(low, high int64) int64 { return low + s(high-low+1) }

// upTo draws whole ticks from zero up to d.
func (s source) upTo(d, tick time.Duration) time.Duration {
	return tick * time.Duration(s(int64(d/tick)+1))
}

func generator(seed uint64) source {
	r := rand.New(rand.NewPCG(seed, 7))
	return r.Int64N
}

// Random limits: from one a month to a million a second.
var (
	pers    = []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 7 * time.Second, time.Minute, time.Hour, 24 * time.Hour, 31 * 24 * time.Hour}
	permits = []int64{1, 2, 3, 7, 10, 60, 100, 777, 7_777, 1_000_000}
)

func (s source) limit(a throttle.Algorithm) throttle.Limit {
	l := throttle.Limit{Algorithm: a, Per: pers[s(int64(len(pers)))], Permits: int(permits[s(int64(len(permits)))])}
	if l.Permits > 1_000_000 || int64(l.Permits) > int64(l.Per/time.Microsecond) {
		l.Permits = 7
	}
	switch a {
	case throttle.AlgorithmTokenBucket, throttle.AlgorithmGCRA:
		l.Burst = int(s.between(1, 12))
	case throttle.AlgorithmFixedWindow:
		if s.chance(25) {
			l.Align = throttle.AlignFirstUse
		}
	case throttle.AlgorithmSlidingLog, throttle.AlgorithmSlidingWindow:
		l.Permits = min(l.Permits, int(s.between(1, 12)))
	}
	if s.chance(50) {
		l.Permits = min(l.Permits, 12) // small enough to be used up
	}
	return l
}

// reserving gives some limits a reserve. That of a window of first use depends on when it begins,
// and is judged by no rule.
func (s source) reserving(limits []throttle.Limit) []throttle.Limit {
	for i, l := range limits {
		if l.Algorithm != throttle.AlgorithmLeakyBucket && l.Align == "" && most(l) > 1 && s.chance(25) {
			limits[i] = l.Reserving(throttle.Part(strconv.FormatInt(s.between(1, min(most(l), 12)-1), 10)))
		}
	}
	return limits
}

// A history is one random life of one limiter.
type history struct {
	suite   Suite
	draw    source
	limiter throttle.Limiter
	limits  []throttle.Limit // in force
	era     int
	start   throttle.Instant
	now     throttle.Instant
	latest  throttle.Instant // the latest reading of the clock
	ledger  ledger
	paused  throttle.Instant // no departure before it
	waiting throttle.Instant // since when the head is in line; zero: no line
	plain   bool             // nothing but takes and time so far, so that decisions are exact
	moves   moves
	verbose bool // whether to trace
	trace   []string
	broken  string
}

// moves are the possible steps beside takes.
type moves struct{ refunds, settles, pauses, tunes, steps bool }

var allMoves = moves{true, true, true, true, true}

// origin is about where histories start.
const origin throttle.Instant = 1_700_000_000_123_456_789

// run runs one history and returns the broken rule, and the steps before if verbose is set, which
// is slow.
func (s Suite) run(draw source, limits []throttle.Limit, m moves, verbose bool) string {
	start := s.first(origin)
	h := &history{suite: s, draw: draw, limits: limits, start: start, now: start, paused: -1 << 62, plain: true, moves: m, verbose: verbose}
	h.limiter = s.Make(limits...)
	h.ledger = ledger{limits: limits, tick: s.Tick, tolerance: h.limiter.Tolerance()}
	for range 32 {
		if h.step(); h.broken != "" {
			break
		}
	}
	if h.broken == "" {
		h.broken = h.ledger.broken(h.era, h.limits)
	}
	if h.broken == "" {
		return ""
	}
	return h.broken + "\n" + strings.Join(h.trace, "\n")
}

// note adds to the trace. Callers check verbose first: making the arguments costs more than taking
// a permit.
func (h *history) note(format string, args ...any) {
	h.trace = append(h.trace, fmt.Sprintf("%16d ", h.now-h.start)+fmt.Sprintf(format, args...))
}

func (h *history) fail(format string, args ...any) {
	if h.broken == "" {
		h.broken = fmt.Sprintf(format, args...)
	}
}

func (h *history) step() {
	h.pass()
	h.latest = max(h.latest, h.now)
	switch move := h.draw(100); {
	case move < 70:
		h.take()
	case move < 78 && h.moves.refunds:
		h.refund()
	case move < 83 && h.moves.settles:
		h.settle()
	case move < 86 && h.moves.pauses:
		h.pause()
	case move < 89 && h.moves.tunes && h.now == h.latest:
		h.tune()
	default:
		h.look()
	}
}

// pass advances time: by nothing, part of an interval, of the tolerance or of a window, or by long.
// Sometimes the clock steps back.
func (h *history) pass() {
	l := h.limits[h.draw(int64(len(h.limits)))]
	interval := max(l.Per/time.Duration(l.Permits), 1)
	switch kind := h.draw(12); {
	case kind < 3:
	case kind < 6:
		h.now = h.now.Add(h.upTo(interval))
	case kind < 7:
		h.now = h.now.Add(interval.Truncate(h.suite.Tick))
	case kind < 9:
		h.now = h.now.Add(h.upTo(2 * h.ledger.tolerance))
	case kind < 11:
		h.now = h.now.Add(h.upTo(l.Per))
	case h.moves.steps && h.draw.chance(50):
		h.plain = false
		// All steps together are bounded: there may be no call of the limiter between two of them.
		most := min(h.shortestPer(), time.Second) - max(h.latest, h.now).Sub(h.now)
		h.now = h.now.Add(-h.upTo(max(most, 0)))
		if h.verbose {
			h.note("clock stepped back")
		}
	default:
		h.now = h.now.Add(h.upTo(4 * l.Per))
	}
}

// shortestPer returns the shortest time per permits of the limits. A clock that moves
// back by more, or by more than a second, has been stepped: a limiter may follow it.
func (h *history) shortestPer() time.Duration {
	per := h.limits[0].Per
	for _, l := range h.limits {
		per = min(per, l.Per)
	}
	return per
}

// upTo draws whole ticks from zero up to d.
func (h *history) upTo(d time.Duration) time.Duration { return h.draw.upTo(d, h.suite.Tick) }

// request draws a request.
func (h *history) request() throttle.Request {
	r := throttle.Request{N: 1, Since: h.now, Urgent: h.draw.chance(30)}
	if h.draw.chance(30) {
		r.Each = make([]int, len(h.limits))
		for i, l := range h.limits {
			r.Each[i] = int(h.draw(min(mostFor(l, r.Urgent), 12) + 1))
		}
	} else if h.draw.chance(30) {
		r.N = int(h.draw.between(1, h.mostOfAll(r.Urgent)))
	}
	if h.waiting != 0 && h.draw.chance(80) {
		r.Since = min(h.waiting, h.now)
	}
	return r
}

func (h *history) mostOfAll(urgent bool) int64 {
	n := int64(12)
	for _, l := range h.limits {
		n = min(n, mostFor(l, urgent))
	}
	return n
}

// mostFor returns the most permits that such a request may have.
func mostFor(l throttle.Limit, urgent bool) int64 {
	if urgent || l.Algorithm == throttle.AlgorithmFixedWindow {
		return most(l)
	}
	return most(l) - int64(l.Reserved())
}

// most returns the most permits that one request may have.
func most(l throttle.Limit) int64 {
	switch l.Algorithm {
	case throttle.AlgorithmLeakyBucket:
		return 12
	case throttle.AlgorithmTokenBucket, throttle.AlgorithmGCRA:
		return int64(max(l.Burst, 1))
	default:
		return int64(l.Permits)
	}
}

func (h *history) take() {
	r := h.request()
	h.forecast(r)
	granted, err := h.limiter.Take(h.now, r)
	if err != nil {
		h.fail("what can be granted is no error: Take(%d, %+v) = %v", h.now-h.start, r, err)
		return
	}
	if h.verbose {
		h.note("Take(%d %v since %d) = %d", r.N, r.Each, r.Since-h.start, granted.At-h.start)
	}
	h.whole(granted.At)
	if granted.At > h.now {
		h.refused(r, granted.At)
		return
	}
	h.granted(r, granted)
}

func (h *history) whole(at throttle.Instant) {
	if !h.suite.whole(at) {
		h.fail("answers are whole ticks of %v: %d is not", h.suite.Tick, at-h.start)
	}
}

func (h *history) granted(r throttle.Request, g throttle.Grant) {
	h.waiting = 0
	if h.now < h.paused {
		h.fail("nothing departs before the end of a pause: one left %v before it", h.paused.Sub(h.now))
	}
	if earliest := max(min(r.Since, h.now), h.now.Add(-h.ledger.tolerance)); g.At < earliest {
		h.fail("late permits are for who stood in line, within the tolerance: %d is before %d", g.At-h.start, earliest-h.start)
	}
	d := departure{at: h.now, grant: g, era: h.era}
	for i := range h.limits {
		n := int64(r.Of(i))
		if h.plain && n > 0 && !h.ledger.allows(i, h.now, n+h.ledger.leaves(i, h.now, r), h.suite.Tick) {
			h.fail("limit %v: %d permits left at %d, before they were due", h.limits[i], n, h.now-h.start)
		}
		d.n = append(d.n, n)
		d.asked = append(d.asked, n)
	}
	h.ledger.departures = append(h.ledger.departures, d)
}

// refused checks the instant of a refusal: a tick before it the limiter refuses, and then it
// grants.
func (h *history) refused(r throttle.Request, at throttle.Instant) {
	if h.waiting == 0 {
		h.waiting = h.now
	}
	if h.plain && h.allStrictly(r, h.now) {
		h.fail("what is due is granted: %+v was refused until %d", r, at-h.start)
	}
	if at == throttle.Never || !h.draw.chance(50) {
		return
	}
	if before := at.Add(-h.suite.Tick); h.now < before {
		h.now = before
		if again, _ := h.limiter.Take(h.now, r); again.At != at {
			h.fail("the instant to ask again is exact: at %d it was %d, not %d", h.now-h.start, again.At-h.start, at-h.start)
			return
		}
	}
	h.now = at
	h.latest = max(h.latest, at)
	got, err := h.limiter.Take(h.now, r)
	if h.verbose {
		h.note("Take(%d %v since %d) = %d, as forecast", r.N, r.Each, r.Since-h.start, got.At-h.start)
	}
	if got.At > at || err != nil {
		h.fail("the instant to ask again is exact: answered %d, then %d, %v", at-h.start, got.At-h.start, err)
		return
	}
	h.granted(r, got)
}

func (h *history) allStrictly(r throttle.Request, now throttle.Instant) bool {
	for i := range h.limits {
		if n := int64(r.Of(i)); n > 0 && !h.ledger.allows(i, now, n+h.ledger.leaves(i, now, r), -h.suite.Tick) {
			return false
		}
	}
	return true
}

func (h *history) forecast(r throttle.Request) {
	if !h.draw.chance(20) {
		return
	}
	forecast := h.limiter.Forecast(h.now, r)
	h.whole(max(forecast.At, h.now))
	granted, _ := h.limiter.Take(h.now, r)
	switch {
	case granted.At > h.now && forecast.At > granted.At:
		h.fail("a forecast is a lower bound: %d, and Take says %d", forecast.At-h.start, granted.At-h.start)
	case granted.At <= h.now && forecast.At > h.now:
		h.fail("a forecast is a lower bound: %d, and Take grants at %d", forecast.At-h.start, h.now-h.start)
	case granted.At <= h.now:
		if h.verbose {
			h.note("Take(%d %v since %d) = %d after a forecast", r.N, r.Each, r.Since-h.start, granted.At-h.start)
		}
		h.granted(r, granted)
	}
}
