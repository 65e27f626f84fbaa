package weirtest

import (
	"net/http"
	"testing"
	"time"
)

func TestGiven(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		field, value string
		want         time.Duration // zero: it gives no time
	}{
		{"Retry-After", "2", 2 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After", "Fri, 02 Jan 2026 03:05:05 GMT", time.Minute},
		{"Retry-After", "-1", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "1e300", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After-Ms", "120", 120 * time.Millisecond},
		{"Retry-After-Ms", "", 0},
		{"X-RateLimit-Reset", "1767323055", 10 * time.Second},
		{"X-RateLimit-Reset", "1767323045.25", 250 * time.Millisecond},
		{"X-RateLimit-Reset", "30", 30 * time.Second},
		{"X-RateLimit-Reset-Requests", "1m2s", 62 * time.Second},
		{"RateLimit", `"minute";r=3;t=40, "second";r=0;t=1`, time.Second},
		{"RateLimit", `"minute";r=0;t=40, "second";r=0;t=1`, 40 * time.Second},
		{"RateLimit", `"minute";r=3;t=40`, 0},
		{"RateLimit", `;;=,`, 0},
		{"Anthropic-RateLimit-Requests-Reset", "2026-01-02T03:04:08Z", 3 * time.Second},
	}
	for _, tt := range tests {
		h := http.Header{}
		h.Set(tt.field, tt.value)
		at, field := given(h, resets, now)
		if got := at.Sub(now); at.IsZero() != (tt.want == 0) || tt.want != 0 && got != tt.want {
			t.Errorf("%s: %s gives %v (%s), want %v", tt.field, tt.value, got, field, tt.want)
		}
	}
}

func TestGivenTakesTheEarliest(t *testing.T) {
	h := http.Header{"Retry-After": {"1"}, "Retry-After-Ms": {"300", "120"}}
	now := time.Now()
	if at, field := given(h, waits, now); at.Sub(now) != 120*time.Millisecond || field != "Retry-After-Ms: 120" {
		t.Errorf("given = %v, %s", at.Sub(now), field)
	}
}
