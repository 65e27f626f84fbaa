package backoff

import (
	"net/http"
	"time"

	cenkalti "github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"
)

// The defaults of a [Policy].
const (
	DefaultAttempts        = 4                      // three retries ride out a deploy or a failover; more belongs to a job queue
	DefaultBase            = 200 * time.Millisecond // about a round trip and a service time
	DefaultCap             = 30 * time.Second       // longer than most failovers
	DefaultMaxThrottled    = 10                     // refusals with a told time are cheap, but not for ever
	DefaultBudgetShare     = 0.2                    // Finagle's RetryBudget
	DefaultBudgetPerSecond = 10                     // Finagle's RetryBudget
	DefaultBufferBody      = 64 << 10               // most calls of an API; few enough to keep for each in flight
)

// A Policy decides whether and when requests are tried again. It holds nothing
// of any request. The zero value, and nil, have the defaults. It is safe for
// concurrent use while its fields are not changed.
type Policy struct {
	// Attempts is the most attempts of one request that count: all but those
	// that ended throttled. Zero means DefaultAttempts.
	Attempts int

	// MaxThrottled is the most throttled answers after which one request is
	// sent again. Zero means DefaultMaxThrottled; less means none.
	MaxThrottled int

	// MaxElapsed is the total time of one request, from its beginning to the
	// last moment at which an attempt may begin. Zero means no bound but the
	// context.
	MaxElapsed time.Duration

	// AttemptTimeout is the time that one attempt may take until its response
	// begins. Next does not read it: who sends the attempt keeps it. Zero means
	// no bound but the context.
	AttemptTimeout time.Duration

	// Base is the bound of the first delay; each later one has twice the bound
	// of the one before. Zero means DefaultBase.
	Base time.Duration

	// Cap is the greatest bound of a delay. A server may ask for more. Zero
	// means DefaultCap.
	Cap time.Duration

	// Delay returns the delay before a retry; the first has the number 1, and
	// retries of throttled requests are counted apart from the others. If nil,
	// NewBackOff is asked.
	Delay func(retry int) time.Duration

	// NewBackOff makes the delays of one request, whose n-th is the one before
	// retry n; Stop ends the request. It is called anew for each decision and
	// asked n times, so a bound on the time since it was made has no effect:
	// MaxElapsed is that bound. If nil, Backoff is asked.
	NewBackOff func() cenkalti.BackOff

	// Backoff returns the delay before a retry from Base, Cap, the number of
	// the retry less one, and the response, which is nil after an error. If
	// nil, the delay is drawn by full jitter.
	Backoff retryablehttp.Backoff

	// CheckRetry says which outcomes are retried, in place of the table and for
	// every method: the caller answers for what is sent twice. It sees errors
	// as an http.Client would show them, without the URL's query; the error it
	// returns is ignored. It is not asked once the context has ended, nor where
	// the server said that waiting will not help. If nil, the table decides.
	CheckRetry retryablehttp.CheckRetry

	// Idempotent says of requests besides those with an idempotent method
	// or an Idempotency-Key that they may be processed twice. If nil, none.
	Idempotent func(*http.Request) bool

	// BudgetShare is the retries allowed as a share of requests. Zero means
	// DefaultBudgetShare; less means none, +Inf no bound.
	BudgetShare float64

	// BudgetPerSecond is the retries allowed on top of BudgetShare. Zero means
	// DefaultBudgetPerSecond; less means none.
	BudgetPerSecond float64

	// BufferBody is the most bytes kept of a body that can be had again in no
	// other way. Next does not read it: who sends the attempts keeps the bytes.
	// Zero means DefaultBufferBody; less means that such a body is sent once.
	BufferBody int64
}

// None never sends a request again.
var None = &Policy{Attempts: 1, MaxThrottled: -1}

var defaults Policy

// Next decides on what follows a. A response that is not to be retried is for
// the caller to return, whatever it says. Of an error the type decides, and
// go-retryablehttp's default policy where that tells nothing. One with a method
// Retryable() bool in its chain says itself whether an attempt may follow, as
// after a broken connection.
//
// Who acts on a retry adds one to a.Throttled where its reason is
// [ReasonThrottled], and else asks a [Budget] first.
func (p *Policy) Next(a Attempt) Decision {
	if a.Err == nil && a.Response.StatusCode < 400 && !a.Signal.Throttled && (p == nil || p.CheckRetry == nil) {
		return Decision{}
	}
	return p.decide(&a)
}

func (p *Policy) decide(a *Attempt) Decision {
	if p == nil {
		p = &defaults
	}
	reason, who := p.classify(a)
	switch {
	case who == nobody:
		return Decision{Reason: reason}
	case who == idempotent && !p.idempotent(a.Request):
		return Decision{Reason: ReasonMethod}
	case !a.Replayable:
		return Decision{Reason: ReasonBody}
	case a.MaxPause > 0 && hint(&a.Signal) > a.MaxPause:
		return Decision{Reason: ReasonDeadline}
	case reason == ReasonThrottled:
		return p.afterThrottled(a)
	}
	return p.afterFailed(a, reason)
}

// classify names the outcome and says whose requests may be sent again after
// it. CheckRetry, where set, has the last word on that.
func (p *Policy) classify(a *Attempt) (Reason, audience) {
	reason, who := outcome(a)
	if p.CheckRetry == nil || reason == ReasonCanceled || a.Signal.Permanent {
		return reason, who
	}
	again, _ := p.CheckRetry(a.Request.Context(), a.Response, clientError(a.Request, a.Err))
	switch {
	case !again && who == nobody:
		return reason, nobody
	case !again:
		return ReasonFinal, nobody
	case who == nobody:
		return ReasonFailed, everybody
	}
	return reason, everybody
}

func (p *Policy) afterThrottled(a *Attempt) Decision {
	if a.Throttled >= p.maxThrottled() {
		return Decision{Reason: ReasonMaxThrottled}
	}
	told := hint(&a.Signal)
	if told > 0 && a.Paused {
		return p.inTime(a, told, Decision{Retry: true, Reason: ReasonThrottled, Lane: true})
	}
	d, ok := p.delay(a.Throttled+1, a.Response)
	if !ok {
		return Decision{Reason: ReasonMaxThrottled}
	}
	d = max(d, told)
	return p.inTime(a, d, Decision{Retry: true, Reason: ReasonThrottled, Delay: d})
}

func (p *Policy) afterFailed(a *Attempt, reason Reason) Decision {
	retry := a.Number - a.Throttled
	if retry >= p.attempts() {
		return Decision{Reason: ReasonAttempts}
	}
	d, ok := p.delay(retry, a.Response)
	if !ok {
		return Decision{Reason: ReasonAttempts}
	}
	d = max(d, hint(&a.Signal))
	return p.inTime(a, d, Decision{Retry: true, Reason: reason, Delay: d})
}

// inTime returns d if the bounds leave the time to wait, and else that they do
// not: a wait that cannot end in time is not begun.
func (p *Policy) inTime(a *Attempt, wait time.Duration, d Decision) Decision {
	left := p.MaxElapsed - a.Elapsed
	late := p.MaxElapsed > 0 && (left <= 0 || wait > left)
	if late || a.Within != 0 && wait > a.Within {
		return Decision{Reason: ReasonDeadline}
	}
	return d
}

// idempotent reports whether the server may process req twice: RFC 9110
// section 9.2.2, or the client gave it a key to find the second one by (the
// Idempotency-Key draft). As in net/http the key may be present without values.
func (p *Policy) idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	if _, ok := req.Header["Idempotency-Key"]; ok {
		return true
	}
	if _, ok := req.Header["X-Idempotency-Key"]; ok {
		return true
	}
	return p.Idempotent != nil && p.Idempotent(req)
}

func (p *Policy) attempts() int {
	if p.Attempts == 0 {
		return DefaultAttempts
	}
	return p.Attempts
}

func (p *Policy) maxThrottled() int {
	if p.MaxThrottled == 0 {
		return DefaultMaxThrottled
	}
	return p.MaxThrottled
}
