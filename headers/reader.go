package headers

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	unitRequests = "requests"
	unitTokens   = "tokens"
	// unitConcurrent is the unit of a bound of calls in flight, in the words of
	// draft-ietf-httpapi-ratelimit-headers.
	unitConcurrent = "concurrent-requests"
)

// A reader reads one response in one dialect.
type reader struct {
	clock
	tally
	dialect *Dialect
	sig     Signal

	scope        Scope         // scope of the refusal, by the response
	refusal      Reason        // reason of a refusal in a field or the body
	notProcessed bool          // the vendor says that it has done nothing
	served       bool          // the vendor says that it has not refused
	forbidden    bool          // the vendor says not to try again
	violated     []string      // names of the quotas for which a problem document refuses
	asks         bool          // the rules for all vendors are applied to the body
	bodyWait     time.Duration // the wait that the body states by those rules
	bare         bool          // RetryAfter was a number without a unit
	waitOf       *Field        // the field of the dialect that set RetryAfter
	cost         float64       // how much of the quota earned the request needs
	rate         float64       // how much of it comes back in a second
	earned       string        // the name of that quota
	drafted      []string      // the lines of RateLimit
	retries      bool          // a header field asks for a wait
}

// header reads everything but the body. It reports whether the response may say anything.
func (r *reader) header(d *Dialect, resp *http.Response, now time.Time) bool {
	if resp == nil {
		return false
	}
	if r.now, r.resp, r.dialect = now, resp, d; d == nil {
		r.dialect = generic
	}
	if !r.standard() && len(r.dialect.Fields) == 0 && !d.CanRefuse(resp.StatusCode) {
		return false
	}
	for i := range r.dialect.Fields {
		r.vendorField(&r.dialect.Fields[i])
	}
	if r.mayRefuse() {
		for i := range refusingFields {
			r.vendorField(&refusingFields[i])
		}
	}
	if r.aged {
		r.tally = tally{} // a cache's answer reports quotas as they once were
	}
	r.settle()
	r.checkUnit()
	r.judge()
	return true
}

// vendorField reads the lines of a field of the dialect.
func (r *reader) vendorField(f *Field) {
	if strings.HasSuffix(f.Name, "*") {
		r.vendorFields(f)
	} else if lines := bounded(r.lines(f.Name)); len(lines) > 0 && f.applies(r.resp) {
		r.field(f, lines)
	}
}

// vendorFields reads all fields that a name with "*" stands for, each for a
// quota of its own.
func (r *reader) vendorFields(f *Field) {
	for name, lines := range r.resp.Header {
		rest, ok := f.names(name)
		if lines = bounded(lines); !ok || len(lines) == 0 || !f.applies(r.resp) {
			continue
		}
		one := *f
		one.Quota = clean(strings.ToLower(rest))
		r.field(&one, lines)
	}
}

// checkUnit finds a Retry-After in milliseconds, as old versions of some interfaces
// send it. Such a value is about a thousand times the reset of a quota. If the dialect
// has MaybeMilliseconds, a reset in whole seconds is near enough. A number that may be
// seconds stays seconds.
func (r *reader) checkUnit() {
	for i := range r.quotas {
		reset := r.quotas[i].Reset
		near := reset / 100
		if r.dialect.MaybeMilliseconds && r.sig.RetryAfter >= 100*time.Second {
			near = time.Second
		}
		if wait := r.sig.RetryAfter / 1000; r.bare && reset > 0 && (wait-reset).Abs() < near {
			r.sig.RetryAfter, r.bare = wait, false
		}
	}
}

// lines returns the lines of a field. A header map that was built by hand may
// hold the name in any case.
func (r *reader) lines(name string) []string {
	if lines := r.resp.Header.Values(name); len(lines) > 0 {
		return lines
	}
	for key, lines := range r.resp.Header {
		if len(key) == len(name) && strings.EqualFold(key, name) {
			return lines
		}
	}
	return nil
}

// standard reads the header fields that any vendor may send, and reports whether there is one
// beside Age.
func (r *reader) standard() (reports bool) {
	for name, lines := range r.resp.Header {
		if isShort(name) || len(name) > len("Age") && !mayBeRetry(name) && !mayHoldLimit(name) {
			continue // saves nearly all of the calls
		}
		if r.standardField(name, lines) {
			reports = true
		}
	}
	if r.retries {
		r.retryAfters()
	}
	if r.drafted != nil {
		r.draft(r.drafted)
	}
	return reports
}

// standardField reads a field, and reports whether it is one beside Age that is of interest. What
// depends on other fields is kept.
func (r *reader) standardField(name string, lines []string) bool {
	kind, rest := kindOf(name)
	switch kind {
	case kindNone:
		return false
	case kindAge: // an instant that was read before took Date for the present
		r.aged, r.hasRef = r.aged || slices.ContainsFunc(bounded(lines), isAged), false
		return false
	case kindRateLimit:
		r.bucket(name, lines)
	}
	if r.claimed(name) {
		return true
	}
	lines = bounded(lines)
	switch {
	case kind == kindRetryAfter:
		r.retries = true
	case kind == kindShouldRetry:
		r.forbidden = r.forbidden || slices.ContainsFunc(lines, isFalse)
	case is(name, "Ratelimit"):
		r.drafted = concat(r.drafted, lines)
	case is(rest, "Policy"):
		r.draftPolicy(lines)
	default:
		r.named(rest, lines)
	}
	return true
}

// retryAfters reads the fields that ask for a wait. Few responses do, and pay for a second walk.
func (r *reader) retryAfters() {
	var retry [len(retryAfterFields)][]string
	for name, lines := range r.resp.Header {
		if !mayBeRetry(name) && !mayHoldLimit(name) {
			continue
		}
		if kind, rest := kindOf(name); kind == kindRetryAfter && !r.claimed(name) {
			i := retryAfterOf(name, rest)
			retry[i] = concat(retry[i], bounded(lines))
		}
	}
	for i, lines := range retry {
		r.retryAfter(lines, retryAfterFields[i].unit)
	}
}

// claimed reports whether the dialect has a row of its own for the field.
func (r *reader) claimed(name string) bool {
	for i := range r.dialect.Fields {
		f := &r.dialect.Fields[i]
		if _, ok := f.names(name); ok && f.applies(r.resp) {
			return true
		}
	}
	return false
}

// retryAfter reads the lines of one of the fields that ask for a wait. The
// longest of several values counts, because each was asked for by a server on
// the way.
func (r *reader) retryAfter(lines []string, unit time.Duration) {
	if r.sig.HasRetryAfter {
		return
	}
	m := members{lines: lines}
	for value, ok := m.next(); ok; value, ok = m.next() {
		wait, valid := r.delay(value, unit)
		if valid {
			r.sig.RetryAfter = max(r.sig.RetryAfter, wait)
			r.sig.HasRetryAfter = true
			r.bare = unit == 0 && isDigits(value)
		}
	}
}

// named reads a field whose name says, after "ratelimit", which fact of which
// quota it belongs to. The most cautious of several values counts, and of several
// fields too: the least limit, the least that remains, the latest reset.
func (r *reader) named(rest string, lines []string) {
	var name quotaName
	name.parse(rest)
	switch name.fact {
	case FactLimit:
		r.limit(&name, lines)
	case FactRemaining:
		if n, ok := least(lines, 0, parseRemaining); ok {
			r.quotaNamed(&name).lowerRemaining(n)
		}
	case FactReset:
		if wait, ok := r.latest(lines, 0, name.per); ok {
			r.quotaNamed(&name).delayReset(wait, ResetUnknown)
		}
	}
}

// limit reads a limit field. Up to draft 03 it may also hold policies, which
// have a window: "100, 100;w=60".
func (r *reader) limit(name *quotaName, lines []string) {
	var limit, policyLimit float64
	var has, hasPolicy bool
	m := members{lines: lines}
	for value, ok := m.next(); ok; value, ok = m.next() {
		number, parameters, _ := strings.Cut(value, ";")
		n, valid := parseCount(trim(number))
		if !valid {
			continue
		}
		if window := windowParameter(parameters); window > 0 {
			if len(r.policies) < maxQuotas {
				r.addPolicy(policy{name.String(), name.unit, n, window})
			}
			lower(&policyLimit, &hasPolicy, n)
		} else {
			lower(&limit, &has, n)
		}
	}
	if !has {
		limit, has = policyLimit, hasPolicy
	}
	if has {
		r.quotaNamed(name).lowerLimit(limit)
	}
}

// windowParameter returns the window among the parameters of a policy, or zero.
// Draft-polli-00 spells it "window", all others "w".
func windowParameter(parameters string) time.Duration {
	for parameters != "" {
		var parameter string
		parameter, parameters, _ = strings.Cut(parameters, ";")
		key, value, _ := strings.Cut(trim(parameter), "=")
		if key != "w" && key != "window" {
			continue
		}
		if d, ok := parseDecimal(value); ok {
			if window, whole := d.times(time.Second, maxWindow); whole {
				return window
			}
		}
	}
	return 0
}

// least returns the least number among the values of a field, without their
// parameters. If member is not zero, only that value is read.
func least(lines []string, member int, parse func(string) (float64, bool)) (n float64, ok bool) {
	m := members{lines: lines}
	for place := 1; ; place++ {
		value, more := m.next()
		if !more {
			return n, ok
		}
		value, _, _ = strings.Cut(value, ";")
		if x, valid := parse(trim(value)); valid && (member == 0 || member == place) {
			lower(&n, &ok, x)
		}
	}
}

// most returns the greatest count among the values of a field.
func most(lines []string, member int) (n float64, ok bool) {
	n, ok = least(lines, member, func(s string) (float64, bool) {
		n, ok := parseCount(s)
		return -n, ok
	})
	return -n, ok
}

// latest returns the longest wait among the values of a field. Member is as in
// least.
func (r *reader) latest(lines []string, member int, per time.Duration) (wait time.Duration, ok bool) {
	m := members{lines: lines}
	for place := 1; ; place++ {
		value, more := m.next()
		if !more {
			return wait, ok
		}
		value, _, _ = strings.Cut(value, ";")
		if d, valid := r.reset(trim(value), per); valid && (member == 0 || member == place) {
			wait, ok = max(wait, d), true
		}
	}
}

// concat joins the lines of fields of the same meaning, within the bound of
// one.
func concat(lines, more []string) []string {
	if len(lines) == 0 {
		return more
	}
	return bounded(slices.Concat(lines, more))
}

// isDigits reports whether s is nothing but digits.
func isDigits(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < '0' || c > '9' })
}

func isFalse(line string) bool { return strings.EqualFold(trim(line), "false") }

// isAged reports whether an Age is above zero (RFC 9111 section 5.1).
func isAged(line string) bool {
	age, ok := parseDecimal(trim(line))
	return ok && age != decimal{}
}

// bucket reads a field that names the bucket of a response: Discord names it by a hash, which counts
// first, GitHub as a resource. A name that could not be a quota's is ignored.
//
// https://discord.com/developers/docs/topics/rate-limits
// https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
func (r *reader) bucket(name string, lines []string) {
	if name != "X-Ratelimit-Bucket" && (name != "X-Ratelimit-Resource" || r.sig.Bucket != "") {
		return
	}
	if len(lines) > 0 && lines[0] != "" && clean(lines[0]) == lines[0] {
		r.sig.Bucket = lines[0]
	}
}
