package backoff

import (
	"net/http"
	"time"

	"github.com/weirgo/weir/headers"
)

// An Attempt is what is known of a request when one of its attempts has ended.
type Attempt struct {
	Number    int           // of this attempt; the first is 1
	Throttled int           // attempts before this one that ended with [ReasonThrottled]
	Elapsed   time.Duration // since the request was made, waits included
	Within    time.Duration // longest wait worth beginning, by deadline; zero means no bound, less that nothing is left
	MaxPause  time.Duration // longest wait that is heeded where the server asks for one; zero means no bound

	// Request is the caller's, not the copy that was sent: its context tells
	// the end of the request from a timeout of the attempt.
	Request  *http.Request
	Response *http.Response // nil where Err is not
	Err      error          // what the base answered in place of a response; see [Policy.Next]
	Signal   headers.Signal // what Response says; [headers.Parse]

	Replayable bool // the body can be had again
	Paused     bool // the request's lane was paused for Response
}

// A Decision says whether and when a request is sent again.
type Decision struct {
	Retry  bool
	Reason Reason        // why, or why not; "" for an answer that needs no retry
	Delay  time.Duration // least time until the request may stand in line again
	Lane   bool          // it stands in line again at once: the lane's pause is its delay
}

// A Reason is why a request is sent again, or why not. It is one of the
// constants below, fit for a label.
type Reason string

// The reasons to send a request again. A retry for [ReasonThrottled] counts in
// MaxThrottled, every other in Attempts and in the [Budget].
const (
	ReasonThrottled Reason = "throttled" // refused for now
	ReasonUnsent    Reason = "unsent"    // nothing reached the server
	ReasonFailed    Reason = "failed"    // a status, a broken connection or a timeout that may pass
)

// The reasons not to.
const (
	ReasonFinal        Reason = "final"         // no attempt would change the outcome
	ReasonCanceled     Reason = "canceled"      // the request's context has ended
	ReasonMethod       Reason = "method"        // the request is not idempotent and may have been processed
	ReasonBody         Reason = "body"          // the body cannot be had again
	ReasonAttempts     Reason = "attempts"      // Attempts are used up
	ReasonMaxThrottled Reason = "max_throttled" // MaxThrottled answers were throttled
	ReasonDeadline     Reason = "deadline"      // the wait is longer than MaxElapsed, Within or MaxPause allows
	ReasonBudget       Reason = "budget"        // for the caller to use where [Budget.Withdraw] refuses
)
