package backoff

import (
	"math/rand/v2"
	"net/http"
	"time"

	cenkalti "github.com/cenkalti/backoff/v4"
	"github.com/weirgo/weir/headers"
)

// delay returns the delay before a retry, the first of its kind being 1, and
// false where there shall be none. The server's wish is not in it.
func (p *Policy) delay(retry int, resp *http.Response) (d time.Duration, ok bool) {
	switch {
	case p.Delay != nil:
		d = p.Delay(retry)
	case p.NewBackOff != nil:
		b := p.NewBackOff()
		for range retry {
			if d = b.NextBackOff(); d == cenkalti.Stop {
				return 0, false
			}
		}
	case p.Backoff != nil:
		d = p.Backoff(p.base(), p.limit(), retry-1, resp)
	default:
		d = fullJitter(p.base(), p.limit(), retry)
	}
	return max(d, 0), true
}

// fullJitter draws a delay uniform in [0, min(limit, base x 2^(retry-1))],
// bounds included.
func fullJitter(base, limit time.Duration, retry int) time.Duration {
	if base <= 0 || limit <= 0 {
		return 0
	}
	bound := limit
	if n := max(retry-1, 0); n < 63 && base <= limit>>n {
		bound = base << n
	}
	return time.Duration(rand.Uint64N(uint64(bound) + 1))
}

// hint returns the time that the server asks for, zero where it asks for none.
// Quotas speak for a refusal only: ordinary servers say "none remaining" on
// every answer at full speed.
func hint(s *headers.Signal) time.Duration {
	if !s.Throttled {
		return s.RetryAfter
	}
	told, _ := s.Wait()
	return told
}

func (p *Policy) base() time.Duration {
	if p.Base == 0 {
		return DefaultBase
	}
	return p.Base
}

func (p *Policy) limit() time.Duration {
	if p.Cap == 0 {
		return DefaultCap
	}
	return p.Cap
}

// Delays returns the policy's delays, without a server's wish, for use with
// github.com/cenkalti/backoff: one for each retry that Attempts allows and then
// Stop. They are of one operation: not for a second one before Reset, nor for
// concurrent use.
func (p *Policy) Delays() cenkalti.BackOff {
	if p == nil {
		p = &defaults
	}
	return &delays{policy: p}
}

type delays struct {
	policy *Policy
	retry  int
}

func (d *delays) Reset() { d.retry = 0 }

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
