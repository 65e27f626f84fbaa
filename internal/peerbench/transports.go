package peerbench

import (
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/time/rate"
)

// Limited is the wrapper that users of golang.org/x/time/rate write themselves:
// a Wait with the request's context before each round trip.
type Limited struct {
	Limiter *rate.Limiter
	Base    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (l *Limited) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := l.Limiter.Wait(req.Context()); err != nil {
		return nil, err
	}
	return l.Base.RoundTrip(req)
}

// Retryable returns go-retryablehttp with its defaults, except for its log line per request: four
// retries, with delays of 1 s, 2 s, 4 s and 8 s or Retry-After. A limiter belongs into base, so
// that retries wait too.
func Retryable(base http.RoundTripper) http.RoundTripper {
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.HTTPClient = &http.Client{Transport: base}
	return &retryablehttp.RoundTripper{Client: client}
}

// Failsafe returns failsafehttp with its default retry policy: two retries after Retry-After. If
// limiter is not nil, each attempt waits for it.
func Failsafe(base http.RoundTripper, limiter ratelimiter.RateLimiter[*http.Response]) http.RoundTripper {
	policies := []failsafe.Policy[*http.Response]{failsafehttp.NewRetryPolicyBuilder().Build()}
	if limiter != nil {
		policies = append(policies, limiter)
	}
	return failsafehttp.NewRoundTripper(base, policies...)
}

// FailsafeLimiter returns the smooth limiter of failsafe-go. Without a longest wait it would reject
// instead of waiting.
func FailsafeLimiter(permits uint, per time.Duration) ratelimiter.RateLimiter[*http.Response] {
	return ratelimiter.NewSmoothBuilder[*http.Response](permits, per).WithMaxWaitTime(time.Hour).Build()
}
