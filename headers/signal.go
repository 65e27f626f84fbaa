package headers

import (
	"slices"
	"time"
)

// A Signal is what one response says about the caller's quotas. The zero value
// says nothing.
type Signal struct {
	Throttled     bool          // refused for now, by a 429 or in another way of the vendor's
	NotProcessed  bool          // the vendor certainly did nothing: a 429, or the vendor's dialect says so
	Permanent     bool          // waiting will not help: the vendor says do not retry, or the quota is zero
	HasRetryAfter bool          // the response itself asks for a wait, RetryAfter
	Scope         Scope         // whom the refusal concerns
	Reason        Reason        // a word of ours, never the vendor's text; "" if the response neither refuses nor forbids
	RetryAfter    time.Duration // from the response's receipt; set if HasRetryAfter
	Quotas        []Quota       // in the order of their names
	Violated      []string      // names of the quotas for which a problem document refuses; nil if it names none
	Bucket        string        // which of its buckets the vendor says that the call came from; "" if it names none
}

// A Reason says what made a response a refusal.
type Reason string

// The reasons. A response with one of the last two is Permanent.
const (
	Reason429       Reason = "status_429" // RFC 6585 section 4
	Reason503       Reason = "status_503" // with a Retry-After
	Reason403       Reason = "status_403" // with a Retry-After, or with a quota that has none remaining
	ReasonStatus    Reason = "status"     // another status that refuses in the vendor's dialect
	ReasonField     Reason = "field"      // a header field says so
	ReasonBody      Reason = "body"       // the body says so
	ReasonZeroQuota Reason = "zero_quota" // the quota is zero
	ReasonNoRetry   Reason = "no_retry"   // the vendor says do not retry
)

// A Quota is one quota as a response reports it. The zero value says nothing.
type Quota struct {
	Name      string        // of the policy, resource or window; "" if the vendor names none
	Partition string        // the key, as bytes, under which the vendor counts the request; "" if it names none
	Unit      string        // "requests", unless the vendor counts something else ("tokens", "content-bytes", ...)
	Limit     float64       // most that is granted in a window; finite; set if HasLimit
	Remaining float64       // finite, not negative; set if HasRemaining
	Reset     time.Duration // from the response's receipt, not negative; set if HasReset
	Window    time.Duration // positive; set if HasWindow

	HasLimit, HasRemaining, HasReset, HasWindow bool

	ResetKind ResetKind // what Reset means
	Advisory  bool      // the vendor does not refuse when none remains
}

// A Scope says whom a refusal concerns.
type Scope uint8

// The scopes of a refusal.
const (
	ScopeUnknown    Scope = iota // the response does not say; weir treats it as ScopeLane
	ScopeRequest                 // this request alone
	ScopeRoute                   // this route or method
	ScopeCredential              // this user, key or token
	ScopeLane                    // everything in the lane of the request
	ScopeGlobal                  // everything sent to the vendor
)

// A ResetKind says what happens at a quota's reset.
type ResetKind uint8

// The kinds of reset.
const (
	ResetUnknown ResetKind = iota // the response does not say
	ResetFull                     // the whole quota is there again
	ResetNext                     // the next permit comes, or a part of the quota
	ResetWindow                   // the window ends; no more than Remaining may be used before
)

// Wait returns how long the signal asks a refused caller to wait from its
// receipt, and whether it asks for that at all. The wait is the first of these
// that is there:
//
//   - RetryAfter, if it is above zero;
//   - the latest reset among the quotas that have none remaining, or that are
//     among Violated;
//   - for a refusal, the latest reset among the quotas that do not say what
//     remains.
//
// Advisory quotas do not count. Nor does a quota of "concurrent-requests" if the
// response does not refuse: its places come free as calls end. If the second result is true, the wait is above
// zero.
func (s Signal) Wait() (time.Duration, bool) {
	if s.RetryAfter > 0 {
		return s.RetryAfter, true
	}
	var wait, vague time.Duration
	for i := range s.Quotas {
		switch q := &s.Quotas[i]; {
		case !q.HasReset || q.Advisory || q.Unit == unitConcurrent && !s.Throttled:
		case slices.Contains(s.Violated, q.Name):
			wait = max(wait, q.Reset)
		case !q.HasRemaining:
			vague = max(vague, q.Reset)
		case q.Remaining == 0:
			wait = max(wait, q.Reset)
		}
	}
	if wait == 0 && s.Throttled {
		wait = vague
	}
	return wait, wait > 0
}
