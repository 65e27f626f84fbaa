package throttle

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// A Limit says how many permits may be spent in how much time, and which
// algorithm enforces that. It is data: it can be compared, printed and parsed,
// and put into JSON, YAML, flags and environment variables. The zero Limit does
// not validate.
//
// To stay below a vendor's limit of L in any window W, keep Permits/Per x W + Burst <=
// L. A bucket of rate L/W and burst L lets out almost 2L in a window.
type Limit struct {
	Algorithm Algorithm     // zero: token bucket
	Permits   int           // granted in each Per; must be positive
	Per       time.Duration // must be positive
	Burst     int           // token bucket and GCRA: the most permits at once; zero: 1
	Unit      string        // what a permit counts: "tokens", ...; zero: "requests"
	Align     Align         // fixed window: where windows begin; zero: the epoch in UTC
	Name      string        // in telemetry and store keys; zero: made of the unit and the place among limits of up to a minute, or longer ones

	// Keep is left to other clients of the same quota: see [Limit.Enforced]. Zero: nothing.
	Keep Part

	// Reserve is for urgent requests: see [Request].Urgent. All others leave that many permits of
	// the burst, or of the window. A token bucket still earns at the whole rate for them. A fixed
	// window releases its reserve evenly until its end, because unused permits are lost there.
	// After a fraction f of the window it reserves Reserve x (1-f):
	//
	//	fixed 20000/d reserve 10%   2000 at midnight, 1000 at noon, 83 at 23:00
	//
	// Logs and sliding windows release nothing: permits spent there are missed for a whole Per. A
	// window of first use begins with all of its reserve, so no request that is not urgent may ask
	// for more than the rest. A leaky bucket saves no permits and cannot reserve any. Zero: nothing.
	Reserve Part
}

// An Algorithm says how a limit is enforced. The zero value is the token
// bucket.
type Algorithm uint8

// The algorithms, with the most permits that depart in any interval of length
// T, where i is Per/Permits.
const (
	AlgorithmTokenBucket   Algorithm = iota // Burst + T/i
	AlgorithmLeakyBucket                    // 1 + T/i, even after idleness: evenly spaced, as a queue
	AlgorithmFixedWindow                    // Permits in each window; 2 x Permits in an interval of Per that spans two
	AlgorithmSlidingLog                     // Permits in any Per, exactly
	AlgorithmSlidingWindow                  // about Permits in any Per, estimated from two counters
	AlgorithmGCRA                           // Burst + T/i: the token bucket in one stored value
)

// algorithmWords are the algorithms' words as ParseLimit reads them. String
// leaves out that of the token bucket, which a bare "100/s" means.
var algorithmWords = [...]string{
	AlgorithmTokenBucket:   "bucket",
	AlgorithmLeakyBucket:   "leaky",
	AlgorithmFixedWindow:   "fixed",
	AlgorithmSlidingLog:    "log",
	AlgorithmSlidingWindow: "sliding",
	AlgorithmGCRA:          "gcra",
}

// String returns the algorithm's word: "bucket", "leaky", "fixed", "log",
// "sliding" or "gcra".
func (a Algorithm) String() string {
	if int(a) < len(algorithmWords) {
		return algorithmWords[a]
	}
	return fmt.Sprintf("algorithm(%d)", uint8(a))
}

// An Align says where the windows of a fixed-window limit begin.
type Align string

// AlignFirstUse begins a window with the first permit that is spent after the
// window before has ended. The zero Align aligns windows to the Unix epoch in
// UTC.
const AlignFirstUse Align = "first"

// AlignDay begins windows at midnight in a time zone: an IANA name, "Local", or
// "" for UTC. A day has 23 or 25 hours if the zone says so. Per must be 24
// hours.
func AlignDay(zone string) Align { return alignCalendar("day", zone) }

// AlignMonth begins windows at midnight of the first day of each month, in a
// time zone named as for [AlignDay]. Per must be 31 days.
func AlignMonth(zone string) Align { return alignCalendar("month", zone) }

// alignCalendar returns the Align of days or months in a time zone.
func alignCalendar(span, zone string) Align {
	if zone == "" {
		zone = "UTC"
	}
	return Align(span + "@" + zone)
}

// TokenBucket returns a limit that grants permits in each per, and saves up to
// burst unspent ones. At most burst + T/i permits depart in any interval T,
// where i is per/permits.
func TokenBucket(permits int, per time.Duration, burst int) Limit {
	return Limit{Permits: permits, Per: per, Burst: burst}
}

// LeakyBucket returns a limit that spaces departures evenly, as a leaky bucket
// used as a queue. There is never a burst, not even after idleness. A request
// of n permits departs at its instant, and the next one n intervals later.
func LeakyBucket(permits int, per time.Duration) Limit {
	return Limit{Algorithm: AlgorithmLeakyBucket, Permits: permits, Per: per}
}

// FixedWindow returns a limit that grants permits in each window of length per.
// Up to twice the permits depart in a span of per that lies across two windows.
//
// A permit counts in the window in which it is granted. Its caller may wake up later,
// by up to the permit tolerance. So what a window grants at its end may leave in the
// next window. Up to three windows' permits may then depart in a span of per; in one
// that is shorter by the tolerance, two.
func FixedWindow(permits int, per time.Duration) Limit {
	return Limit{Algorithm: AlgorithmFixedWindow, Permits: permits, Per: per}
}

// SlidingLog returns a limit that grants permits in any span of length per. It
// remembers up to that many departures.
//
// A permit counts when it is granted, so a late timer delays those a span later
// as much. The caller of a permit may wake up later, by up to the permit
// tolerance. So the limit is exact for any span that is shorter than per by the
// tolerance. If a server counts every millisecond, make per longer by it, and by
// how much delays on the way to the server differ.
func SlidingLog(permits int, per time.Duration) Limit {
	return Limit{Algorithm: AlgorithmSlidingLog, Permits: permits, Per: per}
}

// SlidingWindow returns a limit that grants permits in a sliding span of length
// per, estimated from two counters. The count of the previous window is
// weighted by how much of it lies in the span, and rounded down to whole
// permits. If traffic is even, the estimate stays within 2 % of the log.
// Adverse traffic reaches nearly twice the permits in a span of per.
func SlidingWindow(permits int, per time.Duration) Limit {
	return Limit{Algorithm: AlgorithmSlidingWindow, Permits: permits, Per: per}
}

// GCRA returns a token bucket under the name of the generic cell rate algorithm (ITU-T
// I.371). That algorithm keeps the bucket in one value, the theoretical arrival time.
// So does this package for every token bucket, and the two are the same.
func GCRA(permits int, per time.Duration, burst int) Limit {
	return Limit{Algorithm: AlgorithmGCRA, Permits: permits, Per: per, Burst: burst}
}

// Of returns l with permits that count a unit: throttle.TokenBucket(90_000, time.Minute,
// 10_000).Of("tokens"). The unit "" is "requests".
func (l Limit) Of(unit string) Limit {
	l.Unit = unit
	return l
}

// Aligned returns l with windows that begin where a says. Only a fixed window has any.
func (l Limit) Aligned(a Align) Limit {
	l.Align = a
	return l
}

// Named returns l with a name for telemetry and the keys of a store.
func (l Limit) Named(name string) Limit {
	l.Name = name
	return l
}

// Validate returns an error that names the first invalid field, with its value.
func (l Limit) Validate() error {
	switch {
	case int(l.Algorithm) >= len(algorithmWords):
		return l.invalid("unknown %v", l.Algorithm)
	case l.Permits <= 0:
		return l.invalid("permits %d are not positive", l.Permits)
	case l.Per <= 0:
		return l.invalid("per %v is not positive", l.Per)
	case l.Burst < 0:
		return l.invalid("burst %d is negative", l.Burst)
	case l.Burst != 0 && !l.saves():
		return l.invalid("burst %d: the %v algorithm saves no permits", l.Burst, l.Algorithm)
	case l.Align != "" && l.Algorithm != AlgorithmFixedWindow:
		return l.invalid("align %q: the %v algorithm has no aligned windows", l.Align, l.Algorithm)
	}
	if err := checkWord("unit", l.Unit); err != nil {
		return l.invalid("%w", err)
	}
	if err := checkWord("name", l.Name); err != nil {
		return l.invalid("%w", err)
	}
	if err := l.Align.check(l.Per); err != nil {
		return l.invalid("%w", err)
	}
	if err := l.checkParts(); err != nil {
		return l.invalid("%w", err)
	}
	return nil
}

// invalid returns the error for a limit that does not validate.
func (l Limit) invalid(format string, args ...any) error {
	return fmt.Errorf("throttle: limit %v: %w", l, fmt.Errorf(format, args...))
}

// saves reports whether the algorithm saves unspent permits, so that Burst
// means something.
func (l Limit) saves() bool {
	return l.Algorithm == AlgorithmTokenBucket || l.Algorithm == AlgorithmGCRA
}

// most returns the most permits that one request may ask for, of a limit that keeps nothing.
func (l Limit) most() int {
	if l.Algorithm == AlgorithmLeakyBucket {
		return math.MaxInt
	}
	return l.Capacity()
}

// Capacity returns the most permits that can be spent at one instant, without those that Keep
// leaves to others: the burst of a bucket, all of a window, and one of a leaky bucket.
func (l Limit) Capacity() int {
	switch l = l.Enforced(); {
	case l.Algorithm == AlgorithmLeakyBucket:
		return 1
	case l.saves():
		return max(l.Burst, 1)
	}
	return l.Permits
}

// exceeded returns the error for a request of n permits, which is more than
// most.
func (l Limit) exceeded(n int64) error {
	most := l.Enforced().most()
	if l.saves() {
		return fmt.Errorf("throttle: %d permits exceed burst of %d of limit %s: %w", n, most, l.Label(), ErrExceedsBurst)
	}
	return fmt.Errorf("throttle: %d permits exceed the window's %d of limit %s: %w", n, most, l.Label(), ErrExceedsBurst)
}

// Check returns an error if n permits at once can never be granted. It matches
// [ErrExceedsBurst], or says that n is negative. If they are granted sooner or
// later, be it only to an urgent request, it returns nil.
func (l Limit) Check(n int) error { return l.CheckRequest(Request{N: n, Urgent: true}, 0) }

// CheckRequest returns what Check does for the permits that r asks of l, limit i of a list. A
// request that is not urgent must leave what l reserves.
func (l Limit) CheckRequest(r Request, i int) error {
	n, leaves, most := r.Of(i), 0, l.Enforced().most()
	if !r.Urgent {
		leaves = l.leaves()
	}
	switch {
	case n < 0:
		return fmt.Errorf("throttle: %d permits are negative", n)
	case n > most:
		return l.exceeded(int64(n))
	case n > most-leaves:
		return fmt.Errorf("throttle: %d permits exceed the %d of %d that limit %s leaves to requests that are not urgent: %w", n, most-leaves, most, l.Label(), ErrExceedsBurst)
	default:
		return nil
	}
}

// Window returns the window of a fixed-window limit that holds the time at, which is
// between 1678 and 2262. Start belongs to the window, end to the next one. If windows
// begin with their first use, or if the limit has none, both are the zero time.
func (l Limit) Window(at time.Time) (start, end time.Time) {
	if l.Algorithm != AlgorithmFixedWindow || l.Align == AlignFirstUse || l.Per <= 0 {
		return time.Time{}, time.Time{}
	}
	from, to, _ := newAlignment(l, nil).around(InstantOf(at), 0)
	return time.Unix(0, int64(from)), time.Unix(0, int64(to))
}

// PerSecond returns the limit's rate, in permits per second: 1.5 for 90 a minute.
// It is the long-run rate that is enforced: neither Burst nor Keep is in it.
func (l Limit) PerSecond() float64 { return float64(l.Enforced().Permits) / l.Per.Seconds() }

// unit returns what a permit counts.
func (l Limit) unit() string {
	if l.Unit == "" {
		return "requests"
	}
	return l.Unit
}

// maxWord bounds a unit or a name, in bytes. Both become part of store keys and
// of telemetry.
const maxWord = 128

// checkWord returns what is wrong with a unit or a name.
func checkWord(field, s string) error {
	if len(s) > maxWord {
		return fmt.Errorf("%s of %d bytes is longer than %d", field, len(s), maxWord)
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return fmt.Errorf("%s %q has a character that cannot be printed", field, s)
		}
	}
	return nil
}

// check returns what is wrong with an alignment of windows of length per.
func (a Align) check(per time.Duration) error {
	span, zone, calendar := strings.Cut(string(a), "@")
	switch {
	case a == "" || a == AlignFirstUse:
		return nil
	case !calendar || span != "day" && span != "month":
		return fmt.Errorf("align %q is not \"first\", \"day@ZONE\" or \"month@ZONE\"", string(a))
	case span == "day" && per != 24*time.Hour:
		return fmt.Errorf("align %q needs per of 24h, not %v", string(a), per)
	case span == "month" && per != 31*24*time.Hour:
		return fmt.Errorf("align %q needs per of 744h, the longest month, not %v", string(a), per)
	case zone == "" || strings.ContainsAny(zone, " \t"):
		return fmt.Errorf("align %q names no time zone", string(a))
	}
	if _, err := time.LoadLocation(zone); err != nil {
		return fmt.Errorf("align %q: unknown time zone", string(a))
	}
	return nil
}

// Label returns what a user calls the limit, for errors and logs. It is the name that
// the user gave. Without one it is the text that [ParseLimit] reads, without what
// [Resolve] fills in: "100/s burst 20". Because it may hold the numbers, it is not for
// telemetry.
func (l Limit) Label() string {
	place, made := strings.CutPrefix(l.Name, l.unit()+"-")
	place = strings.TrimPrefix(place, "long-")
	if l.Name != "" && (!made || strings.Trim(place, "0123456789") != "") {
		return l.Name
	}
	l.Name = ""
	if l.Unit == (Limit{}).unit() {
		l.Unit = ""
	}
	if l.Burst == 1 {
		l.Burst = 0
	}
	return l.String()
}

// placeName returns the name of limit i of a list if none was given. It has the limit's
// place among the limits of its unit, counted apart for those of up to a minute and the
// longer ones. It has neither numbers nor algorithm, so it stays the same while a
// rolling deploy changes those.
func placeName(limits []Limit, i int) string {
	const longest = time.Minute // that is short
	l, place := limits[i], 0
	for _, before := range limits[:i] {
		if before.unit() == l.unit() && (before.Per > longest) == (l.Per > longest) {
			place++
		}
	}
	if l.Per > longest {
		return fmt.Sprintf("%s-long-%d", l.unit(), place)
	}
	return fmt.Sprintf("%s-%d", l.unit(), place)
}

// Resolve returns a copy of limits that are enforced together, with every zero
// Burst, Unit and Name filled in as stores and telemetry need them. The error
// joins one for each limit that does not validate, and for each name that two
// limits have.
func Resolve(limits ...Limit) ([]Limit, error) {
	out := make([]Limit, len(limits))
	seen := make(map[string]bool, len(limits))
	var errs []error
	for i, l := range limits {
		if err := l.Validate(); err != nil {
			errs = append(errs, err)
			continue
		}
		if l.saves() {
			l.Burst = max(l.Burst, 1)
		}
		l.Unit = l.unit()
		if l.Name == "" {
			l.Name = placeName(limits, i)
		}
		if seen[l.Name] {
			errs = append(errs, fmt.Errorf("throttle: two limits are named %q", l.Name))
		}
		seen[l.Name] = true
		out[i] = l
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}
