package testserver

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Style writes a decision into the header of a vendor's answer. Times are rounded up to the
// style's unit, counts down. Styles that write different fields may be combined: see [Vendor].
type Style func(h http.Header, d Decision)

// A Decision is what a vendor decided about one request.
type Decision struct {
	Granted   bool
	Wait      time.Duration // until the request would be granted; zero: it was, or unknown
	Now       time.Time     // by the vendor's wall clock
	Standings []Standing    // one for each limit, after the decision; empty: no limits
}

// Tightest returns the standing that a vendor with a single set of fields reports: that of the
// limit with the longest wait, or with the fewest permits left.
func (d Decision) Tightest() (s Standing, ok bool) {
	for i, other := range d.Standings {
		if i == 0 || other.Wait > s.Wait || other.Wait == s.Wait && other.Remaining < s.Remaining {
			s = other
		}
	}
	return s, len(d.Standings) > 0
}

// RetryAfterSeconds writes Retry-After in seconds on a refusal (RFC 9110 section 10.2.3), unless
// the wait is unknown.
func RetryAfterSeconds(h http.Header, d Decision) {
	if d.Wait > 0 {
		h.Set("Retry-After", inUnits(d.Wait, time.Second))
	}
}

// RetryAfterMillis writes retry-after-ms on a refusal, as OpenAI and Azure do.
func RetryAfterMillis(h http.Header, d Decision) {
	if d.Wait > 0 {
		h.Set("Retry-After-Ms", inUnits(d.Wait, time.Millisecond))
	}
}

// RetryAfterDate writes Retry-After as an HTTP-date by the vendor's clock on a
// refusal (RFC 9110 section 5.6.7).
func RetryAfterDate(h http.Header, d Decision) {
	if d.Wait > 0 {
		at := time.Unix(epoch(d.Now.Add(d.Wait)), 0)
		h.Set("Retry-After", at.UTC().Format(http.TimeFormat))
	}
}

// XRateLimitEpoch writes X-RateLimit-Limit, -Remaining and -Reset of the
// tightest limit, the reset in seconds since 1970, as GitHub does.
func XRateLimitEpoch(h http.Header, d Decision) { xRateLimit(EpochSeconds).Write(h, d) }

// XRateLimitDelta writes X-RateLimit-Limit, -Remaining and -Reset of the
// tightest limit, the reset in seconds from now.
func XRateLimitDelta(h http.Header, d Decision) { xRateLimit(DeltaSeconds).Write(h, d) }

// xRateLimit names the three fields.
func xRateLimit(as ResetFormat) Fields {
	return Fields{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", as}
}

// RateLimit writes RateLimit-Policy and RateLimit as
// draft-ietf-httpapi-ratelimit-headers has them since version 08: structured
// lists with a member for each limit.
func RateLimit(h http.Header, d Decision) {
	var policies, states []string
	for _, s := range d.Standings {
		name := strconv.Quote(s.Limit.name())
		if s.Limit.Per == 0 {
			policies = append(policies, fmt.Sprintf(`%s;q=%d;qu="concurrent-requests"`, name, s.Limit.Permits))
			states = append(states, fmt.Sprintf("%s;r=%d", name, s.Remaining))
			continue
		}
		q, w := perSeconds(s.Limit)
		policies = append(policies, fmt.Sprintf("%s;q=%d;w=%d", name, q, w))
		state := fmt.Sprintf("%s;r=%d", name, s.Remaining)
		if s.Reset >= 0 {
			state += ";t=" + inUnits(s.Reset, time.Second)
		}
		states = append(states, state)
	}
	setList(h, "RateLimit-Policy", policies)
	setList(h, "RateLimit", states)
}

// RateLimitLegacy writes RateLimit-Limit, -Remaining and -Reset of the tightest limit as the same
// draft had them in version 03. The policies of all timed limits follow the quota.
func RateLimitLegacy(h http.Header, d Decision) {
	s, ok := d.Tightest()
	if !ok {
		return
	}
	limits := []string{strconv.Itoa(s.Limit.Quota())}
	for _, other := range d.Standings {
		if other.Limit.Per > 0 {
			q, w := perSeconds(other.Limit)
			limits = append(limits, fmt.Sprintf("%d;w=%d", q, w))
		}
	}
	Fields{"", "RateLimit-Remaining", "RateLimit-Reset", DeltaSeconds}.write(h, d, s)
	setList(h, "RateLimit-Limit", limits)
}

// Coarse writes what many gateways write. On a refusal that is Retry-After in seconds. On every
// answer it is the bare RateLimit-Limit, -Remaining and -Reset, with whole permits rounded down and
// whole seconds rounded up. A vendor of 200/s then reports "0 remaining, reset 1" on nearly every
// success at full speed. A client that obeys it loses most of the rate.
func Coarse(h http.Header, d Decision) {
	RetryAfterSeconds(h, d)
	s, ok := d.Tightest()
	if !ok {
		return
	}
	if s.Reset == 0 {
		s.Reset = 1
	}
	Fields{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", DeltaSeconds}.write(h, d, s)
}

// perSeconds returns the limit's quota for a window of whole seconds.
func perSeconds(l Limit) (quota, seconds int64) {
	seconds = ceil(int64(l.Per), int64(time.Second))
	return int64(float64(l.Permits) * float64(seconds) / l.Per.Seconds()), seconds
}

// inUnits returns d in whole units, rounded up.
func inUnits(d, unit time.Duration) string {
	return strconv.FormatInt(ceil(int64(d), int64(unit)), 10)
}

// epoch returns t in seconds since 1970, rounded up.
func epoch(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

// setList writes a list, unless it is empty.
func setList(h http.Header, field string, members []string) {
	if len(members) > 0 {
		h.Set(field, strings.Join(members, ", "))
	}
}
