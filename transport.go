package weir

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/telemetry"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// The defaults of a Transport.
const (
	// DefaultMaxPause is longer than most callers hold a connection's worth
	// of work.
	DefaultMaxPause = 2 * time.Minute
	// DefaultMaxLanes bounds what keys that somebody else controls can take.
	DefaultMaxLanes = 10_000
)

// A Transport is an [http.RoundTripper] that makes calls wait their turn,
// believes what the server answers, and tries again what may be tried again.
// The zero value works: no limit, default retries. Set the fields before first
// use; a Transport must not be copied after it. It is safe for concurrent use,
// and the functions among its fields must be, too.
//
// It keeps the contract of RoundTripper: the caller's request is not changed
// and its body always closed; a response that was obtained is returned with a
// nil error, also one that says 429 or 500 when attempts ran out. Where none
// was obtained the error is an [*Error].
//
// The context of a request and [http.Client.Timeout] bound everything: waits,
// attempts, delays. A wait that cannot end in time is not begun.
type Transport struct {
	// Base sends the attempts. If nil, http.DefaultTransport is used. With
	// http.Transport.MaxConnsPerHost set, a call may wait there once more,
	// after its permit.
	Base http.RoundTripper

	// Limits are enforced together in every lane for which LimitsFor names
	// none. If both are empty, lanes are paused by refusals only. Where they do
	// not validate, the requests of those lanes fail until SetLimits mends it.
	Limits []throttle.Limit

	// LimitsFor returns the limits of the lane of a key, such as those of the
	// tier it has paid for, and of "" for the lane that keys beyond MaxLanes
	// share. If nil, Limits holds for all.
	LimitsFor func(key string) []throttle.Limit

	// Key returns the lane of a request. If nil, ByHost.
	Key func(*http.Request) string

	// Shadow limits decide beside the enforced ones, in every lane, and enforce
	// nothing: Snapshot counts how often they agree. If empty, none do.
	Shadow []throttle.Limit

	// Cost returns how many permits of a limit a request costs. If nil, one
	// of each. It is an estimate where the response tells better: see Settle.
	Cost func(*http.Request, throttle.Limit) int

	// Tenant returns with whose requests a request shares its lane, and by what
	// weight, as WithTenant does. If nil, or where it returns "", the context
	// says.
	Tenant func(*http.Request) (tenant string, weight int)

	// Prepare is called for each attempt after its wait, on a copy of the
	// request whose header may be changed: signatures and tokens that age are
	// made here. Its error ends the request. It is not called for the hop of a
	// redirect to another host, nor for those after it: see PrepareRedirects. If
	// nil, nothing is done.
	Prepare func(*http.Request) error

	// PrepareRedirects calls Prepare also where http.Client follows a redirect
	// to another host. That host then gets what Prepare adds, where http.Client
	// strips credentials of its own. If false, it gets nothing of it.
	PrepareRedirects bool

	// Store makes the limiters. If nil, those of this process.
	Store throttle.Store

	// Retry decides what is tried again. If nil, a policy with the defaults.
	Retry *backoff.Policy

	// MaxWaiting is the most requests that wait in one lane. Zero means
	// shaping.DefaultMaxWaiting.
	MaxWaiting int

	// MaxWait is the longest that a request waits in line at a time. Zero
	// means no bound but the context.
	MaxWait time.Duration

	// Overflow says who goes when a lane's line is full: when MaxWaiting requests
	// wait, or their bodies are more than MaxWaitingBytes. Zero: who comes.
	Overflow shaping.Overflow

	// MaxWaitingBytes is the most that the bodies of the requests waiting in one
	// lane may hold, by their Content-Length; one request alone may hold more.
	// Zero means no bound.
	MaxWaitingBytes int64

	// MaxForecast refuses a request at once that is expected to wait longer,
	// with those before it in line. It is a guess. Zero means that nobody is
	// refused for a guess.
	MaxForecast time.Duration

	// LowPriorityShare is the share of a lane's departures, by cost, that the
	// requests below the most urgent class in line are guaranteed together; see
	// WithPriority. Zero means shaping.DefaultLowPriorityShare, negative none.
	LowPriorityShare float64

	// MaxPause is the longest pause, as the server asks for it, that requests
	// wait through. A longer one returns its response and refuses requests of
	// its lane with ErrPaused until it ends, an hour at most; so do the other
	// processes that share the lane's limits through a Store, as soon as they
	// hear of it. Zero means DefaultMaxPause.
	MaxPause time.Duration

	// MaxLanes is the most lanes. Beyond it the least recently used idle lane
	// goes; where none may go, further keys share one lane. Zero means
	// DefaultMaxLanes.
	MaxLanes int

	// Learn says whether the limits that nobody configured are learned from the
	// answers. The zero value learns.
	Learn Learning

	// Recall returns what a Transport before this one has learned of the lane of a
	// key, as Learned tells it: the lane goes on with that. If it is nil, or
	// returns nil, the lane learns anew; so it does, with a line of log for the
	// first, where it returns what is none of Learned's, or of another version.
	Recall func(key string) json.RawMessage

	// Dialect reads the responses. If nil, the dialect of their host.
	Dialect *headers.Dialect

	// UnguardedResends leaves alone what net/http sends again behind a call:
	// on connections found dead and on HTTP/2 streams refused. If false, each
	// such send is charged to the lane, and their number is bounded. If Base
	// itself sends a call again after an answer, as one that authenticates or
	// tries again does, those sends are charged, and not bounded.
	UnguardedResends bool

	// TracerProvider makes the tracer of the spans. If nil, the global one.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the meter of the metrics. If nil, the global one. One
	// that collects nothing when the first request comes, such as the global one
	// before any is set, is not asked again, and metrics then cost nothing.
	MeterProvider metric.MeterProvider

	// Logger is told what an operator should know: a lane closed for longer
	// than MaxPause, a wait of more than 30 s (a line a minute at most for each
	// lane and cause), more keys than MaxLanes, keys that look like raw paths.
	// If nil, slog.Default().
	Logger *slog.Logger

	once   sync.Once
	base   http.RoundTripper
	tracer telemetry.Tracer
	lanes  *lanes
	limits atomic.Pointer[[]throttle.Limit] // as they are now

	spoken   atomic.Pointer[spoken] // by the host looked up last
	failures failures               // of the calls that an outer client may try again
}

var _ http.RoundTripper = (*Transport)(nil)

func (t *Transport) init() {
	t.base = t.Base
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	t.tracer = telemetry.NewTracer(t.TracerProvider)
	t.limits.Store(&t.Limits)
	t.lanes = newLanes(t.settings())
	t.failures.began = time.Now()
}

// settings returns what the lanes need to know.
func (t *Transport) settings() settings {
	s := settings{
		maxWaiting: t.MaxWaiting,
		setQueue:   t.setQueue,
		maxPause:   t.maxPause(),
		maxLanes:   t.maxLanes(),
		learn:      t.Learn,
		recall:     t.Recall,
		store:      t.Store,
		shadow:     t.Shadow,
		priced:     t.Cost != nil,
		limits:     t.limitsFor,
		budget:     t.Retry.NewBudget,
		logger:     t.logger,
		tracer:     t.tracer,
		meters:     t.MeterProvider,
	}
	if s.store == nil {
		s.store = throttle.Local{}
	}
	return s
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.once.Do(t.init)
	var c call
	defer c.end()
	if err := c.begin(t, req); err != nil {
		return nil, err
	}
	return c.run()
}

// limitsFor returns the limits of a lane as they are now.
func (t *Transport) limitsFor(key string) []throttle.Limit {
	if t.LimitsFor != nil {
		if limits := t.LimitsFor(key); len(limits) > 0 {
			return limits
		}
	}
	return *t.limits.Load()
}

func (t *Transport) maxPause() time.Duration {
	if t.MaxPause > 0 {
		return t.MaxPause
	}
	return DefaultMaxPause
}

func (t *Transport) maxLanes() int {
	if t.MaxLanes > 0 {
		return t.MaxLanes
	}
	return DefaultMaxLanes
}

func (t *Transport) logger() *slog.Logger {
	if t.Logger != nil {
		return t.Logger
	}
	return slog.Default()
}

// CloseIdleConnections closes the idle connections of Base, if it has any.
func (t *Transport) CloseIdleConnections() {
	t.once.Do(t.init)
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Close sends everybody in line away with an error that matches
// shaping.ErrClosed, refuses later requests, closes the limiters, and ends the
// metrics of the lanes. Calls in flight end by themselves. It does not close the
// Store, nor Base. Calling it again does nothing.
func (t *Transport) Close() error {
	t.once.Do(t.init)
	return t.lanes.close()
}

// ErrPaused is matched by the error for a request whose lane is closed: the
// server asked for a pause longer than [Transport.MaxPause].
var ErrPaused = errors.New("lane is paused")

// setQueue sets the fields of a lane's queue.
func (t *Transport) setQueue(q *shaping.Queue) {
	q.MaxWaiting, q.MaxWait, q.MaxForecast = t.MaxWaiting, t.MaxWait, t.MaxForecast
	q.Overflow, q.MaxWaitingBytes, q.LowPriorityShare = t.Overflow, t.MaxWaitingBytes, t.LowPriorityShare
}
