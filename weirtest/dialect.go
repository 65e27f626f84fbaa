package weirtest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// A Dialect writes what a [Vendor] reports of its limits into the header of an answer. It is called
// for each request that reached the limits, from several goroutines at once.
type Dialect func(h http.Header, a Answer)

// An Answer is what the limits decided about one request. Its numbers are those of
// the tightest limit.
type Answer struct {
	Granted   bool
	Wait      time.Duration // until the request would be granted; zero: it was, or unknown
	Limit     int           // most permits that can remain; zero: there is no limit
	Remaining int           // whole permits left
	Reset     time.Duration // until one permit more, or the end of the window; zero: none will come

	decision testserver.Decision
}

// answerOf returns a decision as dialects see it.
func answerOf(d testserver.Decision) Answer {
	a := Answer{Granted: d.Granted, Wait: d.Wait, decision: d}
	if s, ok := d.Tightest(); ok {
		a.Limit, a.Remaining, a.Reset = s.Limit.Quota(), s.Remaining, s.Next
	}
	return a
}

// dialects are styles whose refusals give a time. A reset is the time until one permit more, unless
// there is a finer field.
var dialects = map[string]testserver.Style{
	"retry-after":      testserver.RetryAfterSeconds,
	"retry-after-date": testserver.RetryAfterDate,
	"retry-after-ms":   testserver.RetryAfterMillis,
	"x-ratelimit":      testserver.Seen(testserver.XRateLimitDelta, testserver.UntilNext),
	"ratelimit":        testserver.Seen(testserver.RateLimit, testserver.UntilNext),
	"ratelimit-03":     testserver.Seen(testserver.RateLimitLegacy, testserver.UntilNext),
	"anthropic":        testserver.Styles(testserver.Anthropic, testserver.RetryAfterSeconds),
	"discord":          testserver.Styles(testserver.Seen(testserver.Discord, testserver.UntilNext), testserver.RetryAfterSeconds),
	"github":           testserver.Seen(testserver.XRateLimitEpoch, testserver.UntilNext),
	"okta":             testserver.Seen(testserver.Okta, testserver.UntilNext),
	"openai":           testserver.Styles(testserver.OpenAI, testserver.RetryAfterMillis),
	"shopify":          testserver.Styles(testserver.Shopify, testserver.RetryAfterSeconds),
}

// Named returns the dialect of that name. It panics for a name that is not in
// [Dialects].
//
//   - "retry-after" writes Retry-After in whole seconds on refusals, and
//     "retry-after-date" writes it as a date (RFC 9110 section 10.2.3).
//   - "retry-after-ms" writes Retry-After-Ms on refusals.
//   - "x-ratelimit" writes X-RateLimit-Limit, -Remaining and -Reset on every
//     answer, the reset in seconds from now.
//   - "ratelimit" writes RateLimit and RateLimit-Policy as
//     draft-ietf-httpapi-ratelimit-headers has them since version 08, and
//     "ratelimit-03" writes RateLimit-Limit, -Remaining and -Reset of version 03.
//   - The others write what the vendor of that name writes.
func Named(name string) Dialect {
	style, ok := dialects[name]
	if !ok {
		panic(fmt.Sprintf("weirtest: no dialect %q in %q", name, Dialects()))
	}
	return func(h http.Header, a Answer) { style(h, a.decision) }
}

// Dialects returns the names that [Named] knows, sorted, for a test that runs its
// client through each.
func Dialects() []string { return slices.Sorted(maps.Keys(dialects)) }
