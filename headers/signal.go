package headers

import "time"

// A Signal is what one response says about the caller's quotas. The zero value
// says nothing.
type Signal struct {
	Throttled     bool          // refused for now: 429, and the vendors' other ways
	NotProcessed  bool          // the vendor certainly did nothing: 429, and where its dialect says so
	Permanent     bool          // waiting will not help: the vendor says do not retry, or the quota is zero
	Scope         Scope         // whom the refusal concerns
	Reason        Reason        // a word of ours, never the vendor's text; "" if the response neither refuses nor forbids
	RetryAfter    time.Duration // wait the response itself asks for, from now
	HasRetryAfter bool
	Quotas        []Quota
}

// A Reason says what made a response a refusal.
type Reason string

// The reasons. The last two are of responses that are Permanent.
const (
	Reason429       Reason = "status_429"
	Reason503       Reason = "status_503" // with a Retry-After
	Reason403       Reason = "status_403" // with a Retry-After, or a quota that has none remaining
	ReasonStatus    Reason = "status"     // another that refuses in the vendor's dialect
	ReasonField     Reason = "field"      // a header field says so
	ReasonBody      Reason = "body"       // the body says so
	ReasonZeroQuota Reason = "zero_quota" // the quota is zero
	ReasonNoRetry   Reason = "no_retry"   // the vendor says do not retry
)

// A Quota is one quota as a response tells it. The zero value says nothing.
type Quota struct {
	Name      string        // policy, resource or window name; "" where the vendor names none
	Unit      string        // "requests" unless the vendor counts something else ("tokens", "complexity", ...)
	Limit     float64       // finite, where HasLimit
	Remaining float64       // finite, not negative, where HasRemaining
	Reset     time.Duration // from now, not negative, where HasReset
	Window    time.Duration // positive, where HasWindow

	HasLimit, HasRemaining, HasReset, HasWindow bool

	ResetKind ResetKind // what Reset means
	Advisory  bool      // none remaining does not refuse
}

// A Scope says whom a refusal concerns.
type Scope uint8

// The scopes of a refusal.
const (
	ScopeUnknown    Scope = iota // the response does not say; treated as the lane
	ScopeRequest                 // this request alone
	ScopeRoute                   // this route or method
	ScopeCredential              // this user, key or token
	ScopeLane                    // everything in the lane
	ScopeGlobal                  // everything sent to the vendor
)

// A ResetKind says what happens at a quota's reset.
type ResetKind uint8

// The kinds of reset.
const (
	ResetUnknown ResetKind = iota // the response does not say
	ResetFull                     // the quota is whole again
	ResetNext                     // there is more of it
	ResetWindow                   // a window ends
)

// Wait returns the time this signal tells a refused caller to wait from its
// receipt, and whether it tells one at all: RetryAfter where that is above zero,
// else the latest reset among the quotas that have none remaining, else that among
// those of which a refusal does not tell what remains. An Advisory quota tells none.
// The wait is above zero where the second result is true.
func (s Signal) Wait() (time.Duration, bool) {
	if s.RetryAfter > 0 {
		return s.RetryAfter, true
	}
	var wait, vague time.Duration
	for i := range s.Quotas {
		switch q := &s.Quotas[i]; {
		case !q.HasReset || q.Advisory:
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
