package lane

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/gate"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// ErrPaused is matched by the error for a request whose lane is closed, because
// the server asked for a longer pause than callers wait through.
var ErrPaused = gate.ErrPaused

// An Observer receives what happens in one lane. It may keep more for the lane's
// calls. It must be safe for concurrent use.
type Observer interface {
	// Waits is called when a wait begins, and how the lane's limits are shared
	// through a store; nil: they are not. The function that it returns is called
	// with the wait's error when the wait ends.
	Waits(ctx context.Context, w shaping.Wait, store *throttle.StoreState) (ended func(error))
	// Paused is called when the server asked for a pause, and for how long the lane
	// is paused.
	Paused(asked, held time.Duration)
	// Learned receives what the answer to the call with this context has taught.
	Learned(ctx context.Context, k learn.Known)
	// Called and Strayed receive the events of a [store.Watch]: a call to the store, and an event
	// there.
	Called(c store.Call)
	Strayed(e store.Event)
	// Closed is called when the lane ends, and the last state of its store; nil: it
	// had none.
	Closed(store *throttle.StoreState)
}

// Settings are the owner's settings for lanes. The functions must be safe for concurrent use.
type Settings struct {
	MaxInFlight       int                               // most calls of a lane of a key in flight; zero: any number
	SharedMaxInFlight int                               // the same in all processes that share Store
	ReservedInFlight  int                               // of MaxInFlight, for urgent requests
	Line              shaping.Line                      // of each queue
	MaxPause          time.Duration                     // longest pause that callers wait through
	MaxLanes          int                               // most lanes of keys, and most sub-lanes
	Learn             bool                              // lanes learn their server's limit from the answers
	Share             float64                           // of the reported or learned limit, for a lane; zero or 1: all
	Spread            bool                              // calls are spread evenly over a window that the server reports
	WaitResets        bool                              // a reported quota that is spent pauses the lane until its reset, if that is exact
	Recall            func(key string) *learn.Memory    // returns valid earlier knowledge; nil: none. If nil, none
	Store             throttle.Store                    // makes the limiters
	Shadow            []throttle.Limit                  // limits that decide beside a lane's own, and enforce nothing
	Priced            func() bool                       // reports whether a request may cost differently for each limit
	Limits            func(key string) []throttle.Limit // returns the limits of a key as they are now
	Budget            func() *backoff.Budget            // makes the budget of one lane
	Logger            func() *slog.Logger
	Observe           func(key string) Observer     // makes the observer of a new lane
	Opened            func(key string, shared bool) // called for a new lane that has a key, or is shared
}
