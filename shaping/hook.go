package shaping

import (
	"context"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Hook is told what happens in a queue. Any function may be nil. They are
// called in the caller's goroutine, holding no lock, and must be safe for
// concurrent use.
type Hook struct {
	// Wait is called when a wait really begins: not where the permits were
	// at hand, nor where the caller was refused at once. What it returns,
	// unless nil, is called when the wait ends, with its error.
	Wait func(ctx context.Context, w Wait) (ended func(error))
}

// A Wait is a wait that begins.
type Wait struct {
	Queue   *Queue          // in whose line the caller waits
	Planned time.Duration   // how long it takes at least
	Waiting int             // callers in line before this one joined
	Visits  int             // times the turn departed before
	Limit   string          // the name of the limit that holds it; "" where none does
	Reason  throttle.Reason // what it waits for
}

func (h *Hook) wait(ctx context.Context, begun *Wait) (ended func(error)) {
	if begun != nil && h.Wait != nil {
		ended = h.Wait(ctx, *begun)
	}
	if ended == nil {
		ended = func(error) {}
	}
	return ended
}
