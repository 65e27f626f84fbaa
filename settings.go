package weir

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// longestPause is the longest time for which a lane stays closed without asking
// again. A server with one wrong header must not keep its clients away for
// longer.
const longestPause = time.Hour

// A laneObserver is told what happens in one lane. It may keep more for the
// lane's calls.
type laneObserver interface {
	// Waits is told that a wait begins, and how the lane's limits are shared through
	// a store; nil: they are not. What it returns is told how the wait ended.
	Waits(ctx context.Context, w shaping.Wait, store *throttle.StoreState) (ended func(error))
	// Paused is told of a pause that was asked for, and how long it is held.
	Paused(asked, held time.Duration)
	// Learned is told what the call with this context has taught.
	Learned(ctx context.Context, k learn.Known)
	// Closed is told that the lane ends, and how its store was last; nil: it had none.
	Closed(store *throttle.StoreState)
}

// settings are the fields of a Transport that its lanes need.
type settings struct {
	maxWaiting int
	setQueue   func(*shaping.Queue)
	maxPause   time.Duration
	maxLanes   int
	learn      Learning
	recall     func(key string) json.RawMessage // returns what was learned before; nil: nothing was
	store      throttle.Store
	shadow     []throttle.Limit
	priced     bool                              // a request may cost differently for each limit
	limits     func(key string) []throttle.Limit // returns the limits of a key as they are now
	budget     func() *backoff.Budget            // makes the budget of one lane
	logger     func() *slog.Logger
	observe    func(key string) laneObserver
	opened     func(key string, shared bool) // told of each new lane that has a key, or is shared
}
