package backoff

import (
	"cmp"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// The defaults of a [Policy].
const (
	DefaultAttempts        = 4                      // three retries ride out a lost connection or an instance that leaves: 0.7 s on average, 1.4 s at most
	DefaultBase            = 200 * time.Millisecond // of FullJitter: about a round trip and a service time
	DefaultCap             = 30 * time.Second       // of FullJitter: longer than most failovers
	DefaultMaxThrottled    = 10                     // refusals with a time are cheap, but not for ever; see MaxThrottled for others
	DefaultBudgetShare     = 0.2                    // Finagle's RetryBudget
	DefaultBudgetPerSecond = 10                     // Finagle's RetryBudget
	DefaultBufferBody      = 64 << 10               // most calls of an API; few enough to keep for each in flight
)

// A Policy decides whether and when requests are tried again. It holds no state of a
// request. The zero value has the defaults, and so has a nil pointer. It is safe for
// concurrent use while its fields do not change.
type Policy struct {
	// Attempts is the most attempts of one request: attempts = retries + 1.
	// Attempts that ended throttled do not count. Zero means DefaultAttempts, whose
	// delays end after 1.4 s at most. To outlast a deploy or a failover, set more,
	// or try again from a job queue.
	Attempts int

	// MaxThrottled is how many throttled answers of one request are followed by
	// another attempt. Zero means DefaultMaxThrottled, but 7 after an answer without
	// a time: the default delays then hold the request for 25.4 s at most. Most clients
	// allow 30 s. A negative number means none.
	MaxThrottled int

	// MaxElapsed is the longest time from the beginning of a request to the
	// beginning of its last attempt. Zero means no bound but the context.
	MaxElapsed time.Duration

	// AttemptTimeout is the longest time from the sending of an attempt to the
	// beginning of its response. Next does not read it: the sender of the
	// attempt, such as weir.Transport, keeps it. Zero means no bound but the
	// context.
	AttemptTimeout time.Duration

	// Delay returns the delay before a retry, as [FullJitter] or a function of
	// yours does; [FromBackOff] and [FromRetryable] take it from other
	// libraries. Retries of throttled requests are numbered apart from the
	// others. A server may ask for more. If nil, FullJitter(DefaultBase,
	// DefaultCap) is used.
	Delay Delay

	// CheckRetry says which outcomes are retried, in place of the table. It
	// decides for every method, so it must not let a request be sent twice that
	// may be processed only once. It sees errors as an http.Client shows them,
	// without the URL's query. The error that it returns is ignored. It is not
	// asked if the context has ended, or if the server said that waiting will
	// not help. If nil, the table of the package's documentation decides.
	CheckRetry retryablehttp.CheckRetry

	// Idempotent reports whether the server may process a request twice. It is
	// asked for requests that have neither an idempotent method nor an
	// Idempotency-Key. If nil, no such request may.
	Idempotent func(*http.Request) bool

	// BudgetShare is how many retries a [Budget] allows, as a share of the
	// requests: 0.2 allows one retry for five requests. Zero means
	// DefaultBudgetShare; a negative share means no retries, +Inf no bound.
	BudgetShare float64

	// BudgetPerSecond is how many retries per second a [Budget] allows on top
	// of BudgetShare. Zero means DefaultBudgetPerSecond; a negative number means none.
	BudgetPerSecond float64

	// BufferBody is the most bytes of a body that are kept for a retry. A body
	// is kept only if it has no GetBody and cannot be rewound; a longer one is
	// sent once. Next does not read it: the sender of the attempts keeps the
	// bytes. Zero means DefaultBufferBody; with a negative number no body is kept.
	BufferBody int64
}

// None is the policy that never sends a request again. It must not be changed.
var None = &Policy{Attempts: 1, MaxThrottled: -1}

// defaults is the policy that a nil pointer stands for.
var defaults Policy

// Next decides what follows attempt a. If it decides against a retry, the caller
// returns the response, whatever its status.
//
// An error is judged by its type. If its chain has a method Retryable() bool,
// that decides whether another attempt may follow, as it may after a broken
// connection. An error of unknown type is left to go-retryablehttp's default
// policy.
//
// A caller that follows a decision to retry adds one to the next attempt's Throttled if
// the reason is [ReasonThrottled]. For any other reason it asks its [Budget] first.
func (p *Policy) Next(a Attempt) Decision {
	if a.Err == nil && a.Response.StatusCode < 400 && !a.Signal.Throttled && (p == nil || p.CheckRetry == nil) {
		return Decision{}
	}
	return p.decide(&a)
}

// decide is Next for an outcome that may need a retry.
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

// classify names the outcome of a, and says whose requests may be sent again
// after it. CheckRetry, if set, overrules the second.
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

// afterThrottled decides after a throttled answer: whether MaxThrottled and the
// time allow another attempt, and whether the lane's pause is its delay.
func (p *Policy) afterThrottled(a *Attempt) Decision {
	asked := hint(&a.Signal)
	if a.Throttled >= p.maxThrottled(asked) {
		return Decision{Reason: ReasonMaxThrottled}
	}
	if asked > 0 && a.Paused {
		return p.inTime(a, asked, Decision{Retry: true, Reason: ReasonThrottled, AfterPause: true})
	}
	d, ok := p.delay(a.Throttled+1, a.Response)
	if !ok {
		return Decision{Reason: ReasonMaxThrottled}
	}
	d = max(d, asked)
	return p.inTime(a, d, Decision{Retry: true, Reason: ReasonThrottled, Delay: d})
}

// afterFailed decides after a failure: whether Attempts and the time allow
// another attempt.
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

// inTime returns d if the wait fits the time that is left. Otherwise it returns a
// decision for [ReasonDeadline]: a wait that cannot end in time is not begun.
func (p *Policy) inTime(a *Attempt, wait time.Duration, d Decision) Decision {
	left := p.MaxElapsed - a.Elapsed
	late := p.MaxElapsed > 0 && (left <= 0 || wait > left)
	if late || a.TimeLeft != 0 && wait > a.TimeLeft {
		return Decision{Reason: ReasonDeadline}
	}
	return d
}

// idempotent reports whether the server may process req twice. It may if the method is
// idempotent (RFC 9110 section 9.2.2), or if a key lets the server recognise the second
// request (draft-ietf-httpapi-idempotency-key-header). As in net/http the key may be
// present without a value.
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

// attempts returns Attempts or its default.
func (p *Policy) attempts() int { return cmp.Or(p.Attempts, DefaultAttempts) }

// maxUntimed is the default of MaxThrottled after an answer without a time.
const maxUntimed = 7

// maxThrottled returns MaxThrottled or its default, after an answer with that
// time.
func (p *Policy) maxThrottled(wait time.Duration) int {
	switch {
	case p.MaxThrottled != 0:
		return p.MaxThrottled
	case wait == 0:
		return maxUntimed
	}
	return DefaultMaxThrottled
}
