package telemetry

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A Meter counts for one lane. The zero Meter counts nothing. It is safe for
// concurrent use, and is not copied after its first use.
type Meter struct {
	group *group // nil: nobody collects

	// What was counted of the lane's store, under the lock of the metrics.
	unknown, void uint64
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

// Turn counts a turn in the line that has ended with err. What one that was
// granted needs is made once.
func (m *Meter) Turn(ctx context.Context, turn *shaping.Turn, store Store, err error) {
	g := m.group
	if g == nil {
		return
	}
	r := resultOf(err, turn.Arrived() != 0)
	if r == resultAdmitted {
		if with := g.admitted[store].Load(); with != nil {
			g.admissions.Add(ctx, 1, *with...)
			return
		}
	}
	with := []metric.AddOption{g.seen.admissions.of(g.name,
		attribute.String("weir.result", string(r)), attribute.String("weir.store", store.String()))}
	if r == resultAdmitted {
		g.admitted[store].Store(&with)
	}
	g.admissions.Add(ctx, 1, with...)
}

// Wait begins a wait in line that really waits. What it returns counts the wait,
// and then calls ended.
func (m *Meter) Wait(ctx context.Context, w *shaping.Wait, ended func(error)) func(error) {
	g := m.group
	if g == nil {
		return ended
	}
	began, reason := time.Now(), w.Reason
	return func(err error) {
		g.waits.Record(ctx, time.Since(began).Seconds(), g.seen.waits.of(g.name,
			attribute.String("weir.wait.reason", string(reason)), attribute.String("weir.result", string(resultOf(err, true)))))
		ended(err)
	}
}

// Refusal counts a refusal. Of the status codes, those are told that usually
// refuse: servers may make up others.
func (m *Meter) Refusal(ctx context.Context, resp *http.Response, signal *headers.Signal) {
	g := m.group
	if g == nil {
		return
	}
	with := []attribute.KeyValue{attribute.String("weir.hint", hintOf(resp, signal))}
	switch resp.StatusCode {
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		with = append(with, attribute.Int("http.response.status_code", resp.StatusCode))
	}
	g.throttled.Add(ctx, 1, g.seen.throttled.of(g.name, with...))
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

// Pause counts a pause that the server asked for, of which so much was held.
func (m *Meter) Pause(told, held time.Duration) {
	g := m.group
	if g == nil {
		return
	}
	g.pauses.Record(context.Background(), held.Seconds(), g.seen.pauses.of(g.name, attribute.Bool("weir.clamped", told > held)))
}

// Retry counts a retry, or why there is none of what may be tried again.
func (m *Meter) Retry(ctx context.Context, d backoff.Decision, resp *http.Response, err error) {
	g := m.group
	if g == nil {
		return
	}
	outcome := "retried"
	if !d.Retry {
		switch outcome = string(d.Reason); d.Reason {
		case "", backoff.ReasonFinal, backoff.ReasonCanceled:
			return
		}
	}
	g.retries.Add(ctx, 1, g.seen.retries.of(g.name,
		attribute.String("weir.retry.outcome", outcome), attribute.String("error.type", FailureOf(resp, err))))
}

// FailureOf returns the class of the status of a failed attempt, or a word: an
// error's text may say anything.
func FailureOf(resp *http.Response, err error) string {
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

// Lost counts the permits that may have been lost in calls to the lane's store,
// and those that were void, since the last time. A nil state is that of a limiter
// without a store.
func (m *Meter) Lost(ctx context.Context, s *throttle.StoreState) {
	g := m.group
	if g == nil || s == nil {
		return
	}
	g.shared.Store(true)
	g.mu.Lock()
	unknown, void := grown(&m.unknown, s.Unknown), grown(&m.void, s.Void)
	g.mu.Unlock()
	if unknown > 0 {
		g.losses.Add(ctx, int64(unknown), g.here)
	}
	if void > 0 {
		g.voids.Add(ctx, int64(void), g.here)
	}
}

// grown returns by how much a count has grown, and keeps it. One that has not is
// of a limiter that began anew.
func grown(kept *uint64, count uint64) uint64 {
	more := max(count, *kept) - *kept
	*kept += more
	return more
}
