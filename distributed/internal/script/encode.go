package script

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Request is one call to the script: what the caller has seen, reports and asks for. Times
// on the wire are in microseconds.
type Request struct {
	now       int64         // µs since the epoch; zero: the clock of Redis. Only tests fill it.
	spelled   bool          // also spells out a usual call; only tests set it
	Tolerance time.Duration // how far back credit for time in line reaches
	Horizon   time.Duration // from the first permit of the run to its last, at most; zero: those before one for later are left to others
	Latest    time.Duration // after now: no permit is dated later
	Most      int           // permits dated after now, at most
	Seen      Echo          // zero: no reply yet
	Period    int64         // the last that counted this caller; zero: never
	Alive     int           // callers, by the last reply; zero: there was none
	State     bool          // the caller wants the state of the limits
	Channel   string        // of the messages; "": publish nothing
	Lane      string        // its name in messages
	Limits    *EncodedLimits
	Reports   []Report
	Groups    []Group
	Update    *Update   // nil: the caller learns nothing
	Field     LaneField // as the caller saw it last
}

// An Echo is how far a caller has seen the state of a lane. The caller sends it back, so that
// Redis can restore a state that it lost.
type Echo struct{ Generation, Epoch, Furthest int64 }

// A Report is an event since the last call.
type Report struct {
	Kind   ReportKind
	At     int64    // of a refund or a settlement: the promised instant, in µs
	Epoch  int64    // of a refund: at the promise
	Span   int64    // of a pause: what remains of it, in µs
	Costs  []int64  // of a refund, a settlement or a local departure: permits of each limit
	Actual []int64  // of a settlement: the actual cost
	Heirs  []string // of a tune: the name from which each limit takes over; "": from none
}

// A ReportKind is the word by which the script knows a report.
type ReportKind string

// The kinds of a report.
const (
	ReportPause  ReportKind = "p" // refused for a time
	ReportResume ReportKind = "o" // an operator ends the pause that runs
	ReportRefund ReportKind = "r" // permits that never left
	ReportStale  ReportKind = "s" // the same, older, or of no use to others at their instant: buckets take it back as far as later charges allow
	ReportSettle ReportKind = "x" // a cost that was estimated
	ReportLocal  ReportKind = "l" // departures while the store was lost
	ReportTune   ReportKind = "t" // other limits
)

// A Group is neighbours in line with equal requests.
type Group struct {
	Count int
	Age   time.Duration // time in line; negative: expected that much later
	Costs []int64       // of one of them, as EncodedLimits.Costs returns them
}

// Keys returns the keys that the request touches: those of its limits first, then
// the logs of the limits from which they take over.
func (r *Request) Keys(lane string) []string {
	keys := r.Limits.Keys(lane)
	for i := range r.Reports {
		for _, heir := range r.Reports[i].Heirs {
			if heir != "" {
				keys = append(keys, logKey(lane, heir))
			}
		}
	}
	return keys
}

// Args appends the arguments of the script, in the order in which main.lua
// lists them.
func (r *Request) Args(buf []any) []any {
	if r.usual() {
		return r.usualArgs(buf)
	}
	var now any = "" // except in tests
	if r.now != 0 {
		now = r.now
	}
	buf = append(buf, now, Micros(r.Tolerance), Micros(r.Latest), Micros(r.Horizon), r.Most,
		r.Seen.Generation, r.Seen.Epoch, r.Seen.Furthest, r.Period, asFlag(r.State), r.Channel, r.Lane)
	buf = r.Limits.args(buf, r.now)
	buf = append(buf, len(r.Reports))
	for i := range r.Reports {
		buf = r.Reports[i].args(buf)
	}
	buf = append(buf, len(r.Groups))
	for i := range r.Groups {
		g := &r.Groups[i]
		count := g.Count
		if r.Limits.Urgency(g.Costs) > 0 {
			count = -count
		}
		buf = appendNumbers(append(buf, count, Micros(g.Age)), r.Limits.Permits(g.Costs))
	}
	buf = append(buf, r.Alive)
	if r.Update != nil {
		buf = r.Update.args(buf)
	}
	return buf
}

func (p *Report) args(buf []any) []any {
	buf = append(buf, string(p.Kind))
	switch p.Kind {
	case ReportPause:
		return append(buf, p.Span)
	case ReportRefund, ReportStale:
		return appendNumbers(append(buf, p.At, p.Epoch), p.Costs)
	case ReportSettle:
		return appendNumbers(appendNumbers(append(buf, p.At), p.Costs), p.Actual)
	case ReportLocal:
		return appendNumbers(buf, p.Costs)
	case ReportTune:
		for _, heir := range p.Heirs {
			buf = append(buf, heir)
		}
	}
	return buf
}

func appendNumbers(buf []any, numbers []int64) []any {
	for _, n := range numbers {
		buf = append(buf, n)
	}
	return buf
}

func asFlag(b bool) string {
	if b {
		return "1"
	}
	return ""
}

// Micros returns a time in µs, as it is sent.
func Micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// EncodedLimits are resolved limits as the script reads them.
type EncodedLimits struct {
	Limits  []encodedLimit
	logs    []string // names of the sliding logs, in order
	Learned bool     // the last one is the learned pace
	Usual   bool     // usual.lua decides for them

	Reserves bool // at least one reserves permits for urgent requests
}

type encodedLimit struct {
	limit     throttle.Limit
	field     string    // of the lane's hash
	claim     string    // everything that decides how it is enforced
	unit, den int64     // unit/den µs from permit to permit, in lowest terms
	calendar  *calendar // nil: the windows need none
}

// Slow reports whether it is a bucket that takes more than a second to earn a permit. The
// script remembers its charges, so that one can come back late.
func (e *encodedLimit) Slow() bool { return !e.Windows() && e.unit/e.den > 1_000_000 }

// Windows reports whether it counts in windows. The others are buckets.
func (e *encodedLimit) Windows() bool { return windows(e.limit.Algorithm) }

// The script counts in the doubles of Lua, which are exact to 2^53, so that numbers are kept below
// a quarter of that. A bucket owes at most four years, and a window lasts half of that: an instant
// beyond nine years is invalid.
const (
	mostNumber = 1 << 51
	mostOwed   = 1 << 47 // µs
	mostWindow = 1 << 46
)

// EncodeLimits encodes resolved limits. The error names the limit that the script cannot count.
func EncodeLimits(limits []throttle.Limit) (*EncodedLimits, error) {
	e := &EncodedLimits{Limits: make([]encodedLimit, len(limits))}
	for i, l := range limits {
		encoded, err := encodeLimit(l)
		if err != nil {
			return nil, fmt.Errorf("distributed: limit %v: %w", l, err)
		}
		e.Limits[i] = encoded
		e.Reserves = e.Reserves || encoded.limit.Reserved() > 0
		if l.Algorithm == throttle.AlgorithmSlidingLog {
			e.logs = append(e.logs, l.Name)
		}
	}
	e.Usual = !e.Reserves && len(limits) > 0 && len(limits) <= mostUsual && // one or two buckets that are not slow
		!slices.ContainsFunc(e.Limits, func(l encodedLimit) bool { return l.Windows() || l.Slow() })
	return e, nil
}

func encodeLimit(l throttle.Limit) (encodedLimit, error) {
	l = l.Enforced()
	windows := windows(l.Algorithm)
	per, burst := min(max(Micros(l.Per), 1), mostNumber-1), max(l.Burst, 1)
	switch {
	case windows && l.Per%time.Microsecond != 0:
		return encodedLimit{}, fmt.Errorf("per %v is not of whole microseconds", l.Per)
	case windows && per >= mostWindow:
		return encodedLimit{}, fmt.Errorf("per %v is not below %v", l.Per, mostWindow*time.Microsecond)
	case int64(l.Permits) >= mostNumber/1000:
		return encodedLimit{}, fmt.Errorf("permits %d are not below %d", l.Permits, int64(mostNumber/1000))
	case int64(burst) >= mostNumber/1000:
		return encodedLimit{}, fmt.Errorf("burst %d is not below %d", burst, int64(mostNumber/1000))
	}
	unit, den := reduce(int64(l.Per), 1000*int64(l.Permits))
	if unit >= mostNumber {
		return encodedLimit{}, fmt.Errorf("%d permits in %v cannot be spaced exactly", l.Permits, l.Per)
	}
	e := encodedLimit{limit: l, field: "=" + l.Name, unit: unit, den: den}
	if !windows && !e.fits(int64(burst)) {
		return encodedLimit{}, fmt.Errorf("burst %d takes longer than %v to earn", burst, mostOwed*time.Microsecond)
	}
	align := cmp.Or(string(l.Align), "-")
	if strings.Contains(align, "@") {
		e.calendar = &calendar{limit: l}
	}
	e.claim = fmt.Sprintf("%s %d %d %d %d %d %s", algorithms[l.Algorithm], l.Permits, per, unit, den, burst, align)
	return e, nil
}

// algorithms are the words by which claims name the algorithms.
var algorithms = [...]string{
	throttle.AlgorithmTokenBucket: "b", throttle.AlgorithmGCRA: "b", throttle.AlgorithmLeakyBucket: "l",
	throttle.AlgorithmFixedWindow: "f", throttle.AlgorithmSlidingLog: "g", throttle.AlgorithmSlidingWindow: "s",
}

// windows reports whether an algorithm counts in windows.
func windows(a throttle.Algorithm) bool {
	return a == throttle.AlgorithmFixedWindow || a == throttle.AlgorithmSlidingLog || a == throttle.AlgorithmSlidingWindow
}

func reduce(a, b int64) (int64, int64) {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x, b / x
}

// fits reports whether the script can count the intervals of n permits.
func (e *encodedLimit) fits(n int64) bool {
	if n >= mostNumber {
		return false
	}
	high, low := bits.Mul64(uint64(n), uint64(e.unit))
	if high >= uint64(e.den) {
		return false
	}
	span, _ := bits.Div64(high, low, uint64(e.den))
	return span < mostOwed
}

// Clamp halves costs until the script can count them. Costs that are charged without a wait
// were not checked.
func (e *EncodedLimits) Clamp(costs []int64) []int64 {
	for i := range costs {
		costs[i] = max(costs[i], 0)
		for !e.Limits[i].fits(costs[i]) {
			costs[i] /= 2
		}
	}
	return costs
}

// Check returns an error for costs that the script cannot count.
func (e *EncodedLimits) Check(costs []int64) error {
	for i, n := range e.Permits(costs) {
		if n < 0 || !e.Limits[i].fits(n) {
			return fmt.Errorf("distributed: %d permits of limit %v are beyond what can be counted", n, e.Limits[i].limit)
		}
	}
	return nil
}

// Keys returns the keys of a lane, all with its hash tag: that of its hash
// first, then those of the sliding logs.
func (e *EncodedLimits) Keys(lane string) []string {
	keys := append(make([]string, 0, 1+len(e.logs)), lane)
	for _, name := range e.logs {
		keys = append(keys, logKey(lane, name))
	}
	return keys
}

func logKey(lane, name string) string { return lane + ":log:" + name }

// args appends the limits as they are at an instant of Redis, zero for now.
func (e *EncodedLimits) args(buf []any, now int64) []any {
	buf = append(buf, len(e.Limits))
	for i := range e.Limits {
		l := &e.Limits[i]
		bounds := ""
		if l.calendar != nil {
			bounds = l.calendar.bounds(now)
		}
		buf = append(buf, l.field, l.claim, bounds, l.limit.Reserved())
	}
	return buf
}

// A calendar returns the bounds of windows that follow a time zone, because the script knows no
// time zones.
type calendar struct {
	limit throttle.Limit
	last  atomic.Pointer[bounds]
}

type bounds struct {
	start, end time.Time // of the window they are around
	text       string
}

// boundsAhead is how many windows are sent after the one that holds the instant. The
// clock of Redis may be ahead, and a permit may be promised.
const boundsAhead = 3

// bounds returns the bounds of the windows around an instant in µs, ascending;
// zero is now.
func (c *calendar) bounds(now int64) string {
	at := time.Now()
	if now != 0 {
		at = time.UnixMicro(now)
	}
	if b := c.last.Load(); b != nil && !at.Before(b.start) && at.Before(b.end) {
		return b.text
	}
	start, end := c.limit.Window(at)
	before, _ := c.limit.Window(start.Add(-1))
	text := strconv.AppendInt(nil, before.UnixMicro(), 10)
	text = strconv.AppendInt(append(text, ','), start.UnixMicro(), 10)
	next := end
	for range 1 + boundsAhead {
		text = strconv.AppendInt(append(text, ','), next.UnixMicro(), 10)
		_, next = c.limit.Window(next)
	}
	b := &bounds{start, end, string(text)}
	c.last.Store(b)
	return b.text
}

// Costs appends the permits that a request asks of each limit to buf. The learned limit counts
// calls: a request takes one permit of it, whatever its cost. If limits reserve permits, the class
// of the request follows, so that permits in hand can be distinguished.
func (e *EncodedLimits) Costs(r *throttle.Request, buf []int64) []int64 {
	any := r.N > 0 || slices.ContainsFunc(r.Each, func(n int) bool { return n > 0 })
	for i := range e.Limits {
		n := int64(r.Of(i))
		if e.Learned && i == len(e.Limits)-1 {
			if n = 0; any {
				n = 1
			}
		}
		buf = append(buf, n)
	}
	switch {
	case !e.Reserves:
	case r.Urgent:
		buf = append(buf, urgent)
	default:
		buf = append(buf, others)
	}
	return buf
}

// The classes that follow costs. An urgent request may spend a permit of any class. Its class is
// the lesser one, so that costs compare that way.
const (
	urgent = -2
	others = -1
)

// Permits returns costs without the class.
func (e *EncodedLimits) Permits(costs []int64) []int64 { return costs[:min(len(costs), len(e.Limits))] }

// Urgency returns 1 if costs are of an urgent request, and limits reserve permits for it.
func (e *EncodedLimits) Urgency(costs []int64) int {
	if e.Reserves && costs[len(costs)-1] == urgent {
		return 1
	}
	return 0
}

// Serves reports whether a permit fetched for costs serves this request: it was fetched for an
// equal one, or for one that differs only in not being urgent.
func Serves(costs, request []int64) bool {
	return slices.EqualFunc(costs, request, func(have, ask int64) bool { return have == ask || ask == urgent && have == others })
}
