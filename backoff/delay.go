package backoff

import (
	"math/rand/v2"
	"net/http"
	"time"

	cenkalti "github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/weirgo/weir/headers"
)

// A Delay returns how long to wait before a retry, or false if there shall be no
// retry. The first retry has the number 1. The response is that of the attempt
// before, and nil if that ended with an error. A negative duration counts as
// zero.
//
// A Delay need not know what the server asks for: [Policy.Next] waits for the
// longer of the two. It must be safe for concurrent use.
type Delay func(retry int, resp *http.Response) (d time.Duration, ok bool)

// FullJitter draws each delay uniformly between zero and a bound, both
// included. The bound of the first delay is base, each later one is twice the
// one before, and none is greater than longest, the cap:
//
//	retry  FullJitter(200*time.Millisecond, time.Second)
//	1      0 to 200 ms
//	2      0 to 400 ms
//	3      0 to 800 ms
//	4, 5   0 to 1 s
//
// If base or longest is not positive, every delay is zero. The source is
// "Exponential Backoff And Jitter" in the AWS Architecture Blog.
func FullJitter(base, longest time.Duration) Delay {
	return func(retry int, _ *http.Response) (time.Duration, bool) {
		return fullJitter(base, longest, retry), true
	}
}

// Constant waits d before each retry, without jitter.
func Constant(d time.Duration) Delay {
	return func(int, *http.Response) (time.Duration, bool) { return d, true }
}

// FromBackOff takes the delays of one request from a BackOff of
// github.com/cenkalti/backoff. Its n-th delay is the one before retry n, and its
// Stop ends the request.
//
// A BackOff keeps the state of one operation, so a new one is made for each
// decision, reset, and asked n times. For that reason its MaxElapsedTime bounds
// each delay, not their sum: see [Policy.MaxElapsed].
func FromBackOff(newBackOff func() cenkalti.BackOff) Delay {
	return func(retry int, _ *http.Response) (d time.Duration, ok bool) {
		b := newBackOff()
		b.Reset() // as cenkalti.Retry does: a literal ExponentialBackOff has no delay before
		for range retry {
			if d = b.NextBackOff(); d == cenkalti.Stop {
				return 0, false
			}
		}
		return d, true
	}
}

// FromRetryable takes the delays from a Backoff of go-retryablehttp, which is
// given waitMin and waitMax as a retryablehttp.Client gives it its RetryWaitMin
// and RetryWaitMax.
func FromRetryable(b retryablehttp.Backoff, waitMin, waitMax time.Duration) Delay {
	return func(retry int, resp *http.Response) (time.Duration, bool) {
		return b(waitMin, waitMax, retry-1, resp), true // they count from zero
	}
}

// fullJitter draws a delay uniform in [0, min(longest, base x 2^(retry-1))],
// bounds included.
func fullJitter(base, longest time.Duration, retry int) time.Duration {
	if base <= 0 || longest <= 0 {
		return 0
	}
	bound := longest
	if n := max(retry-1, 0); n < 63 && base <= longest>>n {
		bound = base << n
	}
	return time.Duration(rand.Uint64N(uint64(bound) + 1))
}

// delay returns the policy's delay before a retry, and false if there shall be
// none. The server's wish is not in it.
func (p *Policy) delay(retry int, resp *http.Response) (time.Duration, bool) {
	if p.Delay == nil {
		return fullJitter(DefaultBase, DefaultCap, retry), true
	}
	d, ok := p.Delay(retry, resp)
	return max(d, 0), ok
}

// hint returns the time that the server asks for, and zero if it asks for none.
// Quotas count in a refusal only: ordinary servers say "none remaining" on
// every answer at full speed.
func hint(s *headers.Signal) time.Duration {
	if !s.Throttled {
		return s.RetryAfter
	}
	wait, _ := s.Wait()
	return wait
}

// BackOff returns the policy's delays for github.com/cenkalti/backoff: one for
// each retry that Attempts allows, and then Stop. A server's wish is not in
// them. They serve one operation at a time, and the next one after Reset; they
// are not safe for concurrent use.
func (p *Policy) BackOff() cenkalti.BackOff {
	if p == nil {
		p = &defaults
	}
	return &delays{policy: p}
}

// delays is a policy seen as a cenkalti.BackOff.
type delays struct {
	policy *Policy
	retry  int // the last one asked for; the first is 1
}

func (d *delays) Reset() { d.retry = 0 }

// NextBackOff returns the next delay, or Stop after the last retry.
func (d *delays) NextBackOff() time.Duration {
	if d.retry+1 >= d.policy.attempts() {
		return cenkalti.Stop
	}
	d.retry++
	wait, ok := d.policy.delay(d.retry, nil)
	if !ok {
		return cenkalti.Stop
	}
	return wait
}
