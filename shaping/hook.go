package shaping

import (
	"context"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Hook observes what happens in a queue. Its functions may be nil. They are
// called on the caller's goroutine, without a lock, and must be safe for
// concurrent use.
type Hook struct {
	// Wait is called when a wait really begins: not if the permits were at hand,
	// and not if the caller was rejected at once. The function that it returns,
	// unless nil, is called with the wait's error when the wait ends.
	Wait func(ctx context.Context, w Wait) (ended func(error))
}

// A Wait describes a wait that begins.
type Wait struct {
	Queue   *Queue          // the queue in whose line the caller waits
	Planned time.Duration   // how long the wait takes at least
	Waiting int             // callers in line before this one joined
	Visits  int             // times the turn departed before
	Lane    string          // the name of the [Roster] for which the caller waits; "": the queue needs one limiter
	Limit   string          // the name of the limit that holds the caller; "" if none does
	Reason  throttle.Reason // cause of the wait
}
