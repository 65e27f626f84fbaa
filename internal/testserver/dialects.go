package testserver

import (
	"fmt"
	"net/http"
	"strconv"
)

// Styles of vendors, by their own documentation. A [View] changes what their numbers mean.
var (
	// OpenAI writes the fields of the quota of requests. The reset is a duration
	// until the quota is back to its initial state.
	// https://platform.openai.com/docs/guides/rate-limits
	OpenAI Style = Fields{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", DeltaUnits}.Write

	// OpenAITokens writes the fields of the quota of tokens, in the same way.
	OpenAITokens Style = Fields{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens", DeltaUnits}.Write

	// Anthropic writes the fields of the quota of requests. The reset is the time
	// at which a continuously refilled bucket is full.
	// https://docs.anthropic.com/en/api/rate-limits
	Anthropic Style = Fields{"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset", DateTime}.Write

	// Auth0 writes X-RateLimit-Limit, -Remaining and -Reset. The reset is the time of
	// the next token in seconds since 1970, rounded down.
	// https://auth0.com/docs/troubleshoot/customer-support/operational-policies/rate-limit-policy
	Auth0 Style = xRateLimit(EpochTruncated).Write

	// Okta writes X-Rate-Limit-Limit, -Remaining and -Reset, the reset in seconds
	// since 1970. https://developer.okta.com/docs/reference/rl-best-practices/
	Okta Style = Fields{"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset", EpochSeconds}.Write

	// Heroku writes RateLimit-Remaining and nothing else.
	// https://devcenter.heroku.com/articles/platform-api-reference#rate-limits
	Heroku Style = Fields{Remaining: "RateLimit-Remaining"}.Write

	// Zendesk writes one quota under two spellings.
	// https://developer.zendesk.com/api-reference/introduction/rate-limits/
	Zendesk = Styles(
		Fields{Limit: "X-Rate-Limit", Remaining: "X-Rate-Limit-Remaining"}.Write,
		Fields{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", DeltaSeconds}.Write,
	)
)

// Styles returns a style that writes the fields of all of them.
func Styles(all ...Style) Style {
	return func(h http.Header, d Decision) {
		for _, style := range all {
			style(h, d)
		}
	}
}

// Discord writes the fields of a bucket that it names. The reset is reported
// twice, with decimals. https://docs.discord.com/developers/topics/rate-limits
func Discord(h http.Header, d Decision) {
	Fields{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", EpochFraction}.Write(h, d)
	Fields{Reset: "X-RateLimit-Reset-After", As: DeltaFraction}.Write(h, d)
	h.Set("X-RateLimit-Bucket", "80c17d2f203122d936070c88c8d10f33")
}

// Shopify writes how much of a leaky bucket is used, and its size.
// https://shopify.dev/docs/api/admin-rest/usage/rate-limits
func Shopify(h http.Header, d Decision) {
	if s, ok := d.Tightest(); ok {
		quota := s.Limit.Quota()
		h.Set("X-Shopify-Shop-Api-Call-Limit", fmt.Sprintf("%d/%d", quota-s.Remaining, quota))
	}
}

// Spring writes the fields of Spring Cloud Gateway's limiter over Redis: permits left, burst, and
// rate in a second. https://docs.spring.io/spring-cloud-gateway/reference/
func Spring(h http.Header, d Decision) {
	Fields{Limit: "X-RateLimit-Burst-Capacity", Remaining: "X-RateLimit-Remaining"}.Write(h, d)
	if s, ok := d.Tightest(); ok && s.Limit.Per > 0 {
		h.Set("X-RateLimit-Replenish-Rate", strconv.Itoa(int(float64(s.Limit.Permits)/s.Limit.Per.Seconds())))
		h.Set("X-RateLimit-Requested-Tokens", "1")
	}
}

// Printful writes the policy as a rate, with a semicolon at its end, and the
// seconds until one permit more with decimals.
// https://developers.printful.com/docs/#section/Rate-Limits
func Printful(h http.Header, d Decision) {
	Seen(Fields{Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset", As: DeltaFraction}.Write, UntilNext)(h, d)
	if s, ok := d.Tightest(); ok {
		q, w := perSeconds(s.Limit)
		h.Set("X-Ratelimit-Policy", fmt.Sprintf("%d;w=%d;", q, w))
	}
}

// Kong writes a quota with its window in the field's name, and the drafts' bare
// fields beside it. https://developer.konghq.com/plugins/rate-limiting/
func Kong(h http.Header, d Decision) {
	Fields{Limit: "X-RateLimit-Limit-Second", Remaining: "X-RateLimit-Remaining-Second"}.Write(h, d)
	Fields{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", DeltaSeconds}.Write(h, d)
}
