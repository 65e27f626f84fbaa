package testserver_test

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

func TestStylesReportTheDecision(t *testing.T) {
	bucket := testserver.TokenBucket(200, time.Second, 20)
	hour := testserver.FixedWindow(5000, time.Hour)
	now := time.Date(2026, 3, 1, 12, 0, 0, 500_000_000, time.UTC)

	success := testserver.Decision{Granted: true, Now: now, Standings: []testserver.Standing{
		{Limit: bucket, Remaining: 0, Reset: 98 * time.Millisecond},
		{Limit: hour, Remaining: 4321, Reset: 1800*time.Second - 500*time.Millisecond},
	}}
	refusal := testserver.Decision{Now: now, Wait: 1501 * time.Millisecond, Standings: []testserver.Standing{
		{Limit: bucket, Remaining: 0, Reset: 1600 * time.Millisecond, Wait: 1501 * time.Millisecond},
		{Limit: hour, Remaining: 0, Reset: 1800*time.Second - 500*time.Millisecond},
	}}
	busy := testserver.Decision{Now: now, Wait: 0, Standings: []testserver.Standing{
		{Limit: testserver.Concurrency(4), Remaining: 0},
	}}
	unlimited := testserver.Decision{Granted: true, Now: now}

	type fields map[string]string
	tests := []struct {
		name     string
		style    testserver.Style
		decision testserver.Decision
		want     fields
	}{
		{"seconds, success", testserver.RetryAfterSeconds, success, fields{}},
		{"seconds, refusal", testserver.RetryAfterSeconds, refusal, fields{"Retry-After": "2"}},
		{"seconds, nobody knows", testserver.RetryAfterSeconds, busy, fields{}},
		{"millis, success", testserver.RetryAfterMillis, success, fields{}},
		{"millis, refusal", testserver.RetryAfterMillis, refusal, fields{"Retry-After-Ms": "1501"}},
		{"date, refusal", testserver.RetryAfterDate, refusal, fields{"Retry-After": "Sun, 01 Mar 2026 12:00:03 GMT"}},
		{"epoch, success", testserver.XRateLimitEpoch, success, fields{
			"X-Ratelimit-Limit": "20", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1772366401"}},
		{"delta, refusal", testserver.XRateLimitDelta, refusal, fields{
			"X-Ratelimit-Limit": "20", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "2"}},
		{"delta, concurrency", testserver.XRateLimitDelta, busy, fields{
			"X-Ratelimit-Limit": "4", "X-Ratelimit-Remaining": "0"}},
		{"draft 08, success", testserver.RateLimit, success, fields{
			"Ratelimit-Policy": `"token-bucket";q=200;w=1, "fixed-window";q=5000;w=3600`,
			"Ratelimit":        `"token-bucket";r=0;t=1, "fixed-window";r=4321;t=1800`}},
		{"draft 08, concurrency", testserver.RateLimit, busy, fields{
			"Ratelimit-Policy": `"concurrency";q=4;qu="concurrent-requests"`,
			"Ratelimit":        `"concurrency";r=0`}},
		{"draft 03, success", testserver.RateLimitLegacy, success, fields{
			"Ratelimit-Limit": "20, 200;w=1, 5000;w=3600", "Ratelimit-Remaining": "0", "Ratelimit-Reset": "1"}},
		{"coarse, success", testserver.Coarse, success, fields{
			"Ratelimit-Limit": "20", "Ratelimit-Remaining": "0", "Ratelimit-Reset": "1"}},
		{"coarse, refusal", testserver.Coarse, refusal, fields{
			"Ratelimit-Limit": "20", "Ratelimit-Remaining": "0", "Ratelimit-Reset": "2", "Retry-After": "2"}},
		{"no limits, delta", testserver.XRateLimitDelta, unlimited, fields{}},
		{"no limits, draft 08", testserver.RateLimit, unlimited, fields{}},
		{"no limits, draft 03", testserver.RateLimitLegacy, unlimited, fields{}},
		{"no limits, coarse", testserver.Coarse, unlimited, fields{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := make(http.Header)
			tt.style(h, tt.decision)
			got := make(fields)
			for field := range h {
				got[field] = h.Get(field)
			}
			if !maps.Equal(got, tt.want) {
				t.Errorf("header = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRateLimitScalesPartsOfASecond(t *testing.T) {
	h := make(http.Header)
	limit := testserver.FixedWindow(20, 100*time.Millisecond)
	limit.Name = "short"
	testserver.RateLimit(h, testserver.Decision{Granted: true, Standings: []testserver.Standing{{Limit: limit}}})
	if got, want := h.Get("RateLimit-Policy"), `"short";q=200;w=1`; got != want {
		t.Errorf("RateLimit-Policy = %s, want %s", got, want)
	}
}
