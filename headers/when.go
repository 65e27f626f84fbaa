package headers

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// yearTwoThousand is the least number that is read as an instant. As a delay it
// would be thirty years.
const yearTwoThousand = 946_684_800

// A clock turns times in a response into waits from its receipt.
type clock struct {
	now  time.Time // when the response was received, by the local clock; zero: see present
	resp *http.Response
	aged bool // a cache answered, so Date is that of the origin, long ago

	ref    time.Time // the instant against which others are taken
	hasRef bool
}

// present returns when the response was received. If that is not given, the clock is read when an
// instant needs it: most responses state delays.
func (c *clock) present() time.Time {
	if c.now.IsZero() {
		c.now = time.Now()
	}
	return c.now
}

// reference returns the vendor's clock if the response shows it, so that a wrong local
// clock does no harm; else the local clock. The Date header (RFC 9110 section 6.6.1)
// shows it, unless a cache answered. There must be exactly one, valid and within a day
// of the local clock.
func (c *clock) reference() time.Time {
	if c.hasRef {
		return c.ref
	}
	c.ref, c.hasRef = c.present(), true
	dates := c.resp.Header["Date"]
	if len(dates) != 1 || c.aged {
		return c.ref
	}
	date, ok := parseHTTPDate(trim(dates[0]), c.now)
	if ok && date.Sub(c.now).Abs() <= 24*time.Hour {
		c.ref = date
	}
	return c.ref
}

// until returns the wait until t. It is zero if t has passed, and maxWait at
// most.
func (c *clock) until(t time.Time) time.Duration {
	return min(max(t.Sub(c.reference()), 0), maxWait)
}

// delay reads one value of Retry-After (RFC 9110 section 10.2.3): a number of
// seconds, to which vendors add fractions, or an instant. If per is above zero,
// it reads only a number, in that unit.
func (c *clock) delay(s string, per time.Duration) (time.Duration, bool) {
	if d, ok := parseDecimal(s); ok {
		return c.number(d, per), true
	}
	if t, ok := parseInstant(s, c.present()); ok && per == 0 {
		return c.until(t), true
	}
	return 0, false
}

// reset reads one value of a reset field: what delay reads, and durations with
// units. Per is the unit of a bare number; if it is zero, the number's size
// states the unit.
func (c *clock) reset(s string, per time.Duration) (time.Duration, bool) {
	if d, ok := parseDecimal(s); ok {
		return c.number(d, per), true
	}
	if d, ok := parseDuration(s, maxWait); ok {
		return d, true
	}
	if t, ok := parseInstant(s, c.present()); ok {
		return c.until(t), true
	}
	if t, ok := parseScriptDate(s); ok {
		return c.until(t), true
	}
	return 0, false
}

// number reads a bare number in the unit per, which is seconds if it is zero.
// The number is an instant if it would be thirty years as a delay: vendors send
// both under one name in milliseconds.
func (c *clock) number(d decimal, per time.Duration) time.Duration {
	if per <= 0 {
		per = time.Second
	}
	if d.whole >= yearTwoThousand*uint64(max(1, time.Second/per)) {
		return c.until(d.instant())
	}
	wait, _ := d.times(per, maxWait)
	return wait
}

// parseInstant reads an HTTP-date or an RFC 3339 timestamp, whose seconds may
// be missing, and whose letters may be small (section 5.6 there).
func parseInstant(s string, now time.Time) (time.Time, bool) {
	// No form is longer; package time quotes in its errors what it could not read.
	if len(s) < len("2006-01-02T15:04Z") || len(s) > 64 {
		return time.Time{}, false
	}
	if !isDigit(s[0]) {
		return parseHTTPDate(s, now)
	}
	layout := time.RFC3339
	if len(s) > 16 && s[16] != ':' {
		layout = "2006-01-02T15:04Z07:00"
	}
	s, leap := cutLeap(s)
	t, err := time.Parse(layout, strings.ToUpper(s))
	return t.Add(leap), err == nil
}

// cutLeap returns a time before a leap second, and that second, if the time is one (RFC 9110 section
// 5.6.7, RFC 3339 section 5.7). Package time reads none.
func cutLeap(s string) (before string, leap time.Duration) {
	if i := strings.LastIndex(s, ":60"); i >= 3 && s[i-3] == ':' {
		return s[:i] + ":59" + s[i+3:], time.Second
	}
	return s, 0
}

// parseHTTPDate reads the three forms of RFC 9110 section 5.6.7. They are
// always in GMT. Package time would read any other zone in the RFC 850 form as
// GMT, so the layout names it.
func parseHTTPDate(s string, now time.Time) (time.Time, bool) {
	if len(s) > 64 {
		return time.Time{}, false
	}
	if t, ok := parseFixdate(s); ok {
		return t, true
	}
	s, leap := cutLeap(s)
	if t, err := time.Parse(http.TimeFormat, s); err == nil {
		return t.Add(leap), true
	}
	if t, err := time.Parse("Monday, 02-Jan-06 15:04:05 GMT", s); err == nil {
		return century(t, now).Add(leap), true
	}
	t, err := time.Parse(time.ANSIC, s)
	return t.Add(leap), err == nil
}

// parseFixdate reads what nearly all servers send. Package time takes ten times as long for it, and
// reads it in small letters, too.
func parseFixdate(s string) (t time.Time, ok bool) {
	const form = http.TimeFormat // "Mon, 02 Jan 2006 15:04:05 GMT"
	if len(s) != len(form) {
		return t, false
	}
	month := strings.Index("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec ", s[8:12])
	ok = month >= 0 && month%4 == 0 && isWeekday(s[:3])
	number := func(from, to int) (n int) {
		ok = ok && s[to] == form[to]
		for i := from; i < to; i++ {
			ok = ok && isDigit(s[i])
			n = 10*n + int(s[i]-'0')
		}
		return n
	}
	day, year, hour, minute, second := number(5, 7), number(12, 16), number(17, 19), number(20, 22), number(23, 25)
	t = time.Date(year, time.Month(month/4+1), day, hour, minute, second, 0, time.UTC)
	return t, ok && s[3:5] == ", " && s[25:] == " GMT" && t.Day() == day && hour < 24 && minute < 60 && second < 60
}

// century gives a two-digit year its century. It is the current one, unless the
// date would be more than fifty years ahead; then it is the one before (RFC
// 9110 section 5.6.7).
func century(t, now time.Time) time.Time {
	now = now.UTC()
	year := now.Year() - now.Year()%100 + t.Year()%100
	full := func(year int) time.Time {
		return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	}
	if full(year).After(now.AddDate(50, 0, 0)) {
		year -= 100
	}
	return full(year)
}

// parseScriptDate reads what JavaScript's Date.toString writes:
// "Tue Feb 16 2021 09:02:42 GMT+0100 (Central European Standard Time)".
func parseScriptDate(s string) (time.Time, bool) {
	s, _, _ = strings.Cut(s, " (")
	if len(s) > 64 {
		return time.Time{}, false
	}
	t, err := time.Parse("Mon Jan 02 2006 15:04:05 GMT-0700", s)
	return t, err == nil
}

// parseDuration reads a duration with units, as package time writes it ("6m0s",
// "2m52.8s"), also with days ("1d12h"), or as hh:mm:ss. A sign is not accepted.
func parseDuration(s string, bound time.Duration) (time.Duration, bool) {
	if strings.IndexByte(s, ':') >= 0 {
		return parseHours(s, bound)
	}
	if s == "" {
		return 0, false
	}
	var sum time.Duration
	for s != "" {
		end := 0
		for end < len(s) && (isDigit(s[end]) || s[end] == '.') {
			end++
		}
		d, ok := parseDecimal(s[:end])
		unit, size := unitOf(s[end:])
		if !ok || unit == 0 {
			return 0, false
		}
		part, _ := d.times(unit, bound)
		sum = min(sum+part, bound)
		s = s[end+size:]
	}
	return sum, true
}

// unitOf returns the unit that s begins with, and the length of its name. The
// unit is zero if there is none.
func unitOf(s string) (unit time.Duration, size int) {
	for _, u := range [...]struct {
		name string
		unit time.Duration
	}{
		{"ns", time.Nanosecond},
		{"us", time.Microsecond},
		{"µs", time.Microsecond},
		{"ms", time.Millisecond},
		{"s", time.Second},
		{"m", time.Minute},
		{"h", time.Hour},
		{"d", 24 * time.Hour},
	} {
		if strings.HasPrefix(s, u.name) {
			return u.unit, len(u.name)
		}
	}
	return 0, 0
}

// parseHours reads hh:mm:ss. The seconds may have a fraction. Days with a point
// behind them may come first, as .NET writes them: "5.01:23:45".
func parseHours(s string, bound time.Duration) (time.Duration, bool) {
	hours, rest, _ := strings.Cut(s, ":")
	minutes, seconds, _ := strings.Cut(rest, ":")
	days := "0"
	if before, after, ok := strings.Cut(hours, "."); ok {
		days, hours = before, after
	}
	var sum time.Duration
	for _, part := range [...]struct {
		text string
		unit time.Duration
		most uint64
	}{{days, 24 * time.Hour, math.MaxUint64}, {hours, time.Hour, math.MaxUint64}, {minutes, time.Minute, 59}, {seconds, time.Second, 59}} {
		d, ok := parseDecimal(part.text)
		if !ok || d.whole > part.most || d.nanos > 0 && part.unit != time.Second {
			return 0, false
		}
		length, _ := d.times(part.unit, bound)
		sum = min(sum+length, bound)
	}
	return sum, true
}

// trim removes optional white space (RFC 9110 section 5.6.3) and no other. A
// no-break space stays, and spoils the value.
func trim(s string) string {
	if s == "" || s[0] > ' ' && s[len(s)-1] > ' ' { // nearly always
		return s
	}
	return strings.Trim(s, " \t")
}
