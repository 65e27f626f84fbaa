package weir

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A meter counts for the lanes of one name. The methods that count events do
// nothing on a nil meter.
type meter struct {
	*metrics
	lane     string
	here     metric.MeasurementOption // the name alone
	source   metric.MeasurementOption // and that what is told of limits is known here
	admitted [storeWords]atomic.Pointer[[]metric.AddOption]
	shared   atomic.Bool // a lane of it has, or had, a store
}

func newMeter(m *metrics, name string) *meter {
	lane := attribute.String("weir.lane", name)
	return &meter{
		metrics: m,
		lane:    name,
		here:    metric.WithAttributeSet(attribute.NewSet(lane)),
		source:  metric.WithAttributeSet(attribute.NewSet(lane, attribute.String("weir.source", "local"))),
	}
}

// A result is how a turn in the line ended, in the words of the telemetry.
type result string

// The results.
const (
	resultAdmitted result = "admitted"
	resultRejected result = "rejected" // sent away, at once or from the line
	resultCanceled result = "canceled" // by the caller
	resultExpired  result = "expired"  // its deadline came, or could no longer be met
	resultClosed   result = "closed"   // with the transport
)

// resultOf returns how a turn ended, which stood in line before or did not.
func resultOf(err error, stood bool) result {
	switch {
	case err == nil:
		return resultAdmitted
	case errors.Is(err, shaping.ErrClosed):
		return resultClosed
	case errors.Is(err, context.Canceled):
		return resultCanceled
	case errors.Is(err, context.DeadlineExceeded) && (stood || !errors.Is(err, shaping.ErrDeadline)):
		return resultExpired
	default:
		return resultRejected
	}
}

// admission counts a turn in the line. What one that was granted needs is made
// once.
func (m *meter) admission(ctx context.Context, store storeWord, r result) {
	if r == resultAdmitted {
		if with := m.admitted[store].Load(); with != nil {
			m.admissions.Add(ctx, 1, *with...)
			return
		}
	}
	with := []metric.AddOption{m.seen.admissions.of(m.lane,
		attribute.String("weir.result", string(r)), attribute.String("weir.store", store.String()))}
	if r == resultAdmitted {
		m.admitted[store].Store(&with)
	}
	m.admissions.Add(ctx, 1, with...)
}

// wait counts a wait in line that really waited.
func (m *meter) wait(ctx context.Context, reason throttle.Reason, d time.Duration, err error) {
	m.waits.Record(ctx, d.Seconds(), m.seen.waits.of(m.lane,
		attribute.String("weir.wait.reason", string(reason)), attribute.String("weir.result", string(resultOf(err, true)))))
}

// refusal counts a refusal. Of the status codes, those are told that usually
// refuse: servers may make up others.
func (m *meter) refusal(ctx context.Context, resp *http.Response, signal *headers.Signal) {
	if m == nil {
		return
	}
	with := []attribute.KeyValue{attribute.String("weir.hint", hintOf(resp, signal))}
	switch resp.StatusCode {
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		with = append(with, attribute.Int("http.response.status_code", resp.StatusCode))
	}
	m.throttled.Add(ctx, 1, m.seen.throttled.of(m.lane, with...))
}

// hintOf returns what told when to come back.
func hintOf(resp *http.Response, signal *headers.Signal) string {
	_, told := signal.Wait()
	switch {
	case signal.HasRetryAfter:
		return "retry_after"
	case told:
		return "ratelimit"
	case len(resp.Header["Retry-After"]) > 0:
		return "invalid"
	default:
		return "none"
	}
}

// pause counts a pause that the server asked for.
func (m *meter) pause(told time.Duration) {
	if m == nil {
		return
	}
	m.pauses.Record(context.Background(), min(told, longestPause).Seconds(), m.seen.pauses.of(m.lane,
		attribute.Bool("weir.clamped", told > longestPause)))
}

// retry counts a retry, or why there is none of what may be tried again.
func (m *meter) retry(ctx context.Context, d backoff.Decision, resp *http.Response, err error) {
	if m == nil {
		return
	}
	outcome := "retried"
	if !d.Retry {
		switch outcome = string(d.Reason); d.Reason {
		case "", backoff.ReasonFinal, backoff.ReasonCanceled:
			return
		}
	}
	m.retries.Add(ctx, 1, m.seen.retries.of(m.lane,
		attribute.String("weir.retry.outcome", outcome), attribute.String("error.type", failureOf(resp, err))))
}

// failureOf returns the class of the status of a failed attempt, or a word.
func failureOf(resp *http.Response, err error) string {
	var t interface{ Timeout() bool }
	switch {
	case err == nil && resp.StatusCode >= 200 && resp.StatusCode <= 599:
		return strconv.Itoa(resp.StatusCode/100) + "xx"
	case errors.As(err, &t) && t.Timeout():
		return "timeout"
	default:
		return "_OTHER"
	}
}

// lost counts the permits that may have been lost in calls to the lane's store,
// and those that were void, since it was asked last.
func (m *meter) lost(ctx context.Context, l *lane, s *throttle.StoreState) {
	if s == nil {
		return
	}
	m.shared.Store(true)
	m.mu.Lock()
	unknown, void := grown(&l.unknown, s.Unknown), grown(&l.void, s.Void)
	m.mu.Unlock()
	if unknown > 0 {
		m.unknown.Add(ctx, int64(unknown), m.here)
	}
	if void > 0 {
		m.void.Add(ctx, int64(void), m.here)
	}
}

// grown returns by how much a count has grown, and keeps it. One that has not is
// of a limiter that began anew.
func grown(kept *uint64, count uint64) uint64 {
	more := max(count, *kept) - *kept
	*kept += more
	return more
}

// tell tells the observer of the lanes of that name.
func (m *meter) tell(o metric.Observer, r *reading) {
	o.ObserveInt64(m.depth, r.depth, m.here)
	o.ObserveInt64(m.keys, r.keys, m.here)
	if r.limited {
		o.ObserveFloat64(m.headroom, r.left, m.source)
	}
	if m.shared.Load() {
		o.ObserveInt64(m.fallback, r.fallback, m.here)
	}
}

// A reading is the state of the lanes of one name.
type reading struct {
	depth, keys, fallback int64

	left    float64 // of the limit of which the least is left
	limited bool    // there is one
}

func (r *reading) add(s *shaping.State) {
	r.keys++
	r.depth += int64(s.Waiting)
	if s.Store != nil && s.Store.Lost {
		r.fallback++
	}
	for _, limit := range s.Limits {
		if left := 1 - limit.Utilization; !r.limited || left < r.left {
			r.left, r.limited = left, true
		}
	}
}
