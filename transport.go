package weir

import (
	"context"
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
	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/internal/telemetry"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// The defaults of a Transport.
const (
	// DefaultMaxPause is two minutes. Few callers wait longer.
	DefaultMaxPause = 2 * time.Minute
	// DefaultMaxLanes bounds the memory that keys take, because others may control
	// them.
	DefaultMaxLanes = 10_000
)

// A Line bounds how many requests may wait in a lane and for how long, and selects whom to reject.
type Line = shaping.Line

// An InFlight bounds the requests of one lane that are in flight at a time. A request is in flight
// from its departure until it has failed, or its response's body was closed or read to the end. A
// connection that was upgraded (101) is in flight until it is closed. The bounds apply together
// with the limits: no permit is spent while the lane is full. If a body is dropped without being
// closed, the garbage collector finds it; the first one in each lane is logged.
type InFlight struct {
	// Max is the most requests in flight in this process. Zero means any number.
	Max int

	// Shared is the most in all processes that share the Store. The Store must bound
	// calls in flight, as that of package distributed does; otherwise all requests
	// fail. The part of a killed process is free again when its lease ends; see
	// distributed.Store. Zero means any number.
	Shared int

	// Reserve is how many of Max, and how many of Shared, only requests of PriorityHigh may
	// use. Zero means none.
	Reserve int

	// UntilHeaders counts a request as in flight only until its response begins, for
	// streams that last. If false, it counts to the end of the body.
	UntilHeaders bool
}

// A Transport is an [http.RoundTripper] that makes calls wait their turn, obeys the
// server's refusals, and retries what may be retried.
// The zero value works: it has no limit, learns, and has the default retries.
// Set the fields before first use. They stand in this order: limits, line, retries and
// learning, sending, telemetry, and what is rarely set. A Transport must not be copied after first
// use. It is safe for concurrent use, and the functions in its fields must be,
// too.
//
// It keeps the contract of RoundTripper. The caller's request is not changed, and its
// body is always closed. A response that was obtained is returned with a nil error.
// That holds even for a 429 or 500 when the attempts have run out, or the wait for the
// next one fails. Its body then has 64 KiB at most, and ends with io.ErrUnexpectedEOF
// if more was to come within 100 ms. If there is no response, or the caller has
// cancelled the context, the error is an [*Error].
//
// The context of a request and [http.Client.Timeout] bound all waits, attempts
// and delays. A wait that cannot end in time is not begun.
type Transport struct {
	// Limits are enforced together in every lane for which LimitsFor returns none.
	// If a lane has no limits of either kind, only the server's refusals and what
	// was learned hold its calls. If limits do not validate, the requests of their
	// lanes fail until SetLimits replaces them.
	//
	// A limit applies to every call of its lane, even those that the vendor does not count in it.
	// If a vendor counts routes apart, set Key to ByRoute, and let LimitsFor return the limits of
	// each.
	Limits []throttle.Limit

	// LimitsFor returns the limits of the lane of a key, such as those of the tier
	// that a customer has paid for. It is also called with "", the key of the lane that
	// keys beyond MaxLanes share. If nil, Limits holds for all lanes.
	LimitsFor func(key string) []throttle.Limit

	// Key returns the key of a request's lane. If nil, ByHost is used.
	Key func(*http.Request) string

	// Keys returns the keys of all lanes of a request, from the narrowest to the widest, such as
	// customer, route and account. The request departs when all of them allow it, and is counted in
	// each. While one delays it, it spends nothing of the others and delays no call there.
	// LimitsFor returns the limits of each.
	//
	// If permits of two busy lanes never come at the same time, a request that needs both keeps its
	// turn in the slower lane. It does so for the time of one of that lane's requests at most: see
	// shaping.Junction. The same holds for a free place of a lane that bounds its calls in flight.
	// It is kept for the lane's mean time between departures, at most.
	//
	// A server's answer concerns the lanes that it names: in violated-policies of a problem
	// document (each of them), else by the bucket, else by the quota that is spent. A name is the
	// key of one of the request's lanes, or the Name of one of their limits; the narrowest such
	// lane counts. An answer that names no lane concerns the widest. A reported quota teaches the
	// lane that it names, in the same way.
	//
	// Line bounds each lane for those who wait for it. A shed request is one with the same keys
	// as the newcomer.
	//
	// A key that is empty or comes twice is left out. If none is left, Key counts. More than
	// MaxKeys fail the request. If nil, Key returns the one key of each request.
	Keys func(*http.Request) []string

	// Cost returns how many permits of a limit a request costs; a negative cost is
	// an error. It may be an estimate that Settle corrects later. If nil, a request
	// costs one permit of each limit.
	//
	// If responses report what is left of a limit's unit, such as tokens, then the cost of
	// requests in flight never exceeds it, unless no response comes for a second. This holds
	// with Learn and without a Store. Before the first response the limit's burst bounds the
	// cost.
	Cost func(*http.Request, throttle.Limit) int

	// Store makes the limiters. If nil, limits are enforced in this process alone.
	Store throttle.Store

	// Line bounds how many requests wait in a lane and for how long, and selects whom to reject if
	// it is full. The zero Line has the defaults.
	Line Line

	// InFlight bounds the requests of one lane that are in flight. The zero InFlight
	// bounds nothing.
	InFlight InFlight

	// Tenant returns the tenant of a request and its weight, as WithTenant sets
	// them: tenants share a lane by their weights. If nil, or if it returns "", the
	// context's tenant counts.
	Tenant func(*http.Request) (tenant string, weight int)

	// Retry decides which requests are sent again, and when. If nil, a policy with the
	// defaults is used.
	Retry *backoff.Policy

	// MaxPause is the longest pause that requests wait through if the server asks for
	// one. If it asks for more, the response is returned. The lane's requests are then
	// rejected with ErrPaused until the pause ends, for an hour at most. Other
	// processes that share the lane's limits through a Store do the same once the store
	// has passed it on. If MaxPause is longer than an hour, requests wait through a longer
	// pause for an hour, too, and are then sent. Zero means DefaultMaxPause.
	MaxPause time.Duration

	// Learn says whether a lane learns its server's limit from the answers. Zero
	// means LearnOn.
	Learn Learning

	// Share is the part of a quota that a lane takes, because other clients that Weir does not know
	// spend from it, too: 0.5 for half. The lane leaves the rest of a reported quota at any time,
	// whichever client has spent the others: with a share of 0.3 it stops at 70 of
	// 100. If the limit is not reported, the largest reading is used. It also takes at most
	// that share of a bucket's rate.
	//
	// Without such reports the limit is learned from refusals. The lane looks for the whole of
	// it, takes its share from then on, and does not look for more. It looks again if it is
	// refused several times. Processes that share a Store take the share together.
	//
	// Configured limits stay as they are: see [throttle.Limit].Keep. It needs Learn, or
	// WaitForReset. Zero means 1, all of it.
	Share float64

	// WaitForReset makes a lane wait for the reset of a quota that is spent. If a served response
	// reports "0 remaining" and a reset, the lane pauses until 20 ms after that reset, as after a
	// refusal. MaxWait, MaxPause and deadlines apply as for any pause: to wait for a reset in an
	// hour, set MaxPause to an hour.
	//
	// The lane also keeps no more calls in flight in this process than the last responses reported
	// to be left. So no call is refused for lack of that quota. A call that hangs counts for four
	// times what responses take: for a second at least, ten at most.
	//
	// It holds for exact resets that are an hour away at most. A reset is not exact if one of these is so:
	//   - It was never more than two seconds away, as with gateways that report
	//     "0 remaining, reset in 1 s" on every response.
	//   - Each response names a later instant.
	//   - It says when a bucket will be full.
	//   - Two windows in a row reported nothing but zero.
	//
	// If the server names buckets, a bucket's quota holds the calls of that bucket alone.
	// If it counts each route by itself, a quota holds the calls of its route alone.
	//
	// If false, such a response pauses nothing. With Learn, the lane slows down before
	// its quota is spent. Single calls then look for the reset, until the lane knows that a
	// window ends with it. They may be refused.
	WaitForReset bool

	// Base sends the attempts. If nil, http.DefaultTransport is used. If its
	// MaxConnsPerHost is set, a call may wait there a second time, after its
	// permit. If a wrapper of the Transport is http.DefaultTransport, Base must be
	// set. A Transport that is the default itself sends through the one of net/http.
	Base http.RoundTripper

	// Prepare is called for each attempt after its wait, with a copy of the request
	// whose header and URL it may change. Make signatures and tokens that age here.
	// An error of Prepare ends the request: a response in hand is then returned.
	//
	// It is not called once http.Client has followed a redirect to another host: see
	// PrepareRedirects. Permits hold for two intervals of the limit, but 10 to 100 ms.
	// If Prepare takes longer, the request gives them back, waits once more in its
	// place, and is sent as Prepare made it. If nil, nothing is done.
	Prepare func(*http.Request) error

	// PrepareRedirects calls Prepare also after a redirect to another host. That
	// host then gets what Prepare adds, although http.Client withholds its own
	// credentials from it. If false, it gets nothing of that.
	PrepareRedirects bool

	// TracerProvider makes the tracer of the spans. If nil, the global one is used.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the meter of the metrics. If nil, the global one is used. It
	// is asked once, when the first request comes. If it collects nothing then, as the
	// global one before any is set, metrics cost nothing.
	MeterProvider metric.MeterProvider

	// ServerAddress adds the attribute server.address, the host of a request's URL, to the spans of
	// waits and delays. It also adds it to the metrics weir.admissions, weir.wait.duration,
	// weir.responses.throttled and weir.retries. In metrics the first 50 hosts of a Transport have
	// their names, and all others are "other". If false, hosts are in no attribute, but may be the
	// names of lanes.
	ServerAddress bool

	// Logger logs what an operator should know. A lane is closed for longer than
	// MaxPause. A request waits for more than 30 s. There are more keys than MaxLanes.
	// Keys look like raw paths. A wait is logged at most once a minute for each lane
	// and cause. If nil, slog.Default() is used.
	Logger *slog.Logger

	// Dialect reads the responses. If nil, it is the dialect of their host.
	Dialect *headers.Dialect

	// Shadow limits decide beside the enforced ones in every lane, and enforce
	// nothing. Snapshot counts how often both agree. If empty, nothing is counted.
	Shadow []throttle.Limit

	// MaxLanes is the most lanes. Beyond it, the idle lane that was used least
	// recently is removed. If none is idle, further keys share one lane. Zero means
	// DefaultMaxLanes.
	MaxLanes int

	// UnguardedResends ignores net/http's own resends behind one call: on dead connections, and on
	// HTTP/2 streams that were refused. If false, each such request is charged to the lane, and
	// their number is bounded. A Base that sends a call again after a response, to authenticate or
	// to retry, is charged and not bounded.
	UnguardedResends bool

	once     sync.Once
	base     http.RoundTripper
	tracer   telemetry.Tracer
	lanes    *lane.Lanes
	memories sync.Map // of *learn.Memory, that ImportLearned brought, by key
	metering sync.Once
	metrics  *telemetry.Metrics               // nil: not collected; made before the first lane
	rawKey   atomic.Bool                      // one was reported
	units    atomic.Bool                      // some limit counts another unit than requests
	warned   atomic.Bool                      // of such a unit without a Cost
	priced   atomic.Bool                      // a context has stated costs by unit
	limits   atomic.Pointer[[]throttle.Limit] // as they are now

	applied applied // configurations

	calls  atomic.Uint64          // requests with several keys: the ID of the last one
	spoken atomic.Pointer[spoken] // dialect of the host that any lane has looked up last
	outer  outerTries             // calls that an outer client may try again
}

var _ http.RoundTripper = (*Transport)(nil)

// original is the default transport from before a Transport may have taken its place.
var original = http.DefaultTransport

// init reads the fields, once. A configuration is applied before or after it.
func (t *Transport) init() {
	t.applied.mu.Lock()
	defer t.applied.mu.Unlock()
	t.applied.started = true
	if t.base = t.Base; t.base == nil {
		t.base = http.DefaultTransport
	}
	if t.base == http.RoundTripper(t) { // it is the default itself
		t.base = original
	}
	t.tracer = telemetry.NewTracer(t.TracerProvider)
	t.lanes = lane.New(t.settings())
	t.outer.began = time.Now()
	t.limits.Store(&t.Limits) // last: Snapshot then finds the lanes
}

// logger returns Logger or its default. slog's default is asked each time,
// because it may change.
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

// Close rejects all requests in line, and all later ones, with an error that matches
// shaping.ErrClosed. It closes the limiters and ends the metrics of the lanes. Calls in
// flight end by themselves. It does not close the Store, nor Base. Calling it again
// does nothing.
func (t *Transport) Close() error {
	t.once.Do(t.init)
	t.metering.Do(func() {}) // never made from now on
	t.metrics.Close()
	return t.lanes.Close()
}

// Shutdown rejects all later requests with an error that matches shaping.ErrClosed. It
// waits until those in line, in flight and between attempts have their responses, and
// then closes the Transport as Close does. If ctx ends before, those that still wait
// are rejected, and the error matches that of ctx. It waits for the bodies of returned
// responses only if a bound of InFlight is set.
func (t *Transport) Shutdown(ctx context.Context) error {
	t.once.Do(t.init)
	t.lanes.Drain()
	for wait := time.Millisecond; !t.lanes.Empty(); wait = min(2*wait, 100*time.Millisecond) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), t.Close())
		}
	}
	return t.Close()
}
