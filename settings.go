package weir

import (
	"encoding/json"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/telemetry"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// longestPause is the longest time for which a lane stays closed without asking
// again. A server with one wrong header must not keep its clients away for
// longer.
const longestPause = time.Hour

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
	tracer     telemetry.Tracer
	meters     metric.MeterProvider // nil: the global one
}
