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

// longestPause is the most that a lane stays closed without asking: a vendor
// cannot pin its clients for longer by one wrong header.
const longestPause = time.Hour

// settings are what lanes need to know of their Transport.
type settings struct {
	maxWaiting int
	setQueue   func(*shaping.Queue)
	maxPause   time.Duration
	maxLanes   int
	learn      Learning
	recall     func(key string) json.RawMessage // what was learned before; nil: nothing
	store      throttle.Store
	shadow     []throttle.Limit
	priced     bool                              // what a request costs differs from limit to limit
	limits     func(key string) []throttle.Limit // as they are now
	budget     func() *backoff.Budget            // makes the budget of one lane
	logger     func() *slog.Logger
	tracer     telemetry.Tracer
	meters     metric.MeterProvider // nil: the global one
}
