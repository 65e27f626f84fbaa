package backoff

import (
	"net/http"
	"time"

	"github.com/weirgo/weir/headers"
)

// An Attempt is the facts of a request when one of its attempts has ended. Number and Request must
// be set, and Response or Err.
type Attempt struct {
	Number    int           // of this attempt; the first is 1
	Throttled int           // attempts before this one that ended with [ReasonThrottled]
	Elapsed   time.Duration // since the request began, waits included
	TimeLeft  time.Duration // until the request's deadline; zero means no deadline, less that it has passed
	MaxPause  time.Duration // longest wait that a server is granted if it asks for one; zero means no bound

	// Request is the caller's, not the copy that was sent: its context holds
	// the end of the request from a timeout of the attempt.
	Request  *http.Request
	Response *http.Response // nil if Err is set
	Err      error          // what the base returned in place of a response; see [Policy.Next]
	Signal   headers.Signal // what Response says, from [headers.Parse]; the zero value says nothing

	Replayable bool // the body can be sent again
	Paused     bool // the request's lane was paused because of Response
}

// A Decision says whether and when a request is sent again.
type Decision struct {
	Retry      bool
	Reason     Reason        // why, or why not; "" after an answer that needs no retry
	Delay      time.Duration // least time until the request may rejoin the line
	AfterPause bool          // its lane's pause is its delay: it rejoins the line at once
}

// A Reason says why a request is sent again, or why not. It is one of the
// constants below, so it is fit for a metric's label.
type Reason string

// The reasons to send a request again. A retry for [ReasonThrottled] counts in
// MaxThrottled, every other one in Attempts and in the [Budget].
const (
	ReasonThrottled Reason = "throttled" // refused for now
	ReasonUnsent    Reason = "unsent"    // nothing reached the server
	ReasonFailed    Reason = "failed"    // a status, a broken connection or a timeout that may pass
)

// The reasons not to send it again.
const (
	ReasonFinal        Reason = "final"         // another attempt would end in the same way
	ReasonCanceled     Reason = "canceled"      // the request's context has ended
	ReasonMethod       Reason = "method"        // the request is not idempotent and may have been processed
	ReasonBody         Reason = "body"          // the body cannot be sent again
	ReasonAttempts     Reason = "attempts"      // Attempts are used up, or the Delay ended the request
	ReasonMaxThrottled Reason = "max_throttled" // MaxThrottled answers were throttled, or the Delay ended the request
	ReasonDeadline     Reason = "deadline"      // the wait is longer than MaxElapsed, TimeLeft or MaxPause allows
	ReasonBudget       Reason = "budget"        // never from Next: for callers that [Budget.Withdraw] refuses
)
