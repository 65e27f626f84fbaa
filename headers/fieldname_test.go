package headers_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/headers"
)

// The last word of a reset's name may be its unit. It is not part of the quota's name, so the reset
// belongs to the quota of the other fields.
func TestResetNamesItsUnit(t *testing.T) {
	for _, c := range []struct {
		name, value string
		quota       string
		want        time.Duration
	}{
		{"X-RateLimit-Reset-Ms", "5000", "", 5 * time.Second},
		{"RateLimit-Reset-Ms", "250", "", 250 * time.Millisecond},
		{"X-Rate-Limit-Reset-Milliseconds", "1500.5", "", 1500500 * time.Microsecond},
		{"X-RateLimit-Reset-Millis", "0", "", 0},
		{"X-RateLimit-Reset-Ms", "1795176060000", "", time.Minute}, // an epoch
		{"X-RateLimit-Reset-Ms", "2026-11-20T12:01:00Z", "", time.Minute},
		{"X-RateLimit-Reset-Tokens-Ms", "5000", "tokens", 5 * time.Second},
		{"X-RateLimit-Tokens-Reset-Ms", "5000", "tokens", 5 * time.Second},
		{"X-RateLimit-Reset-Seconds", "5", "", 5 * time.Second},
		{"X-RateLimit-Reset-Ms-Tokens", "5", "ms-tokens", 5 * time.Second}, // no unit: a word of the name
		{"X-RateLimit-Reset", "1795176060123", "", 60123 * time.Millisecond},
		{"X-RateLimit-Reset-Ms", "99999999999", "", month},
	} {
		got := parse(200, c.name, c.value)
		if len(got.Quotas) != 1 || got.Quotas[0].Name != c.quota || got.Quotas[0].Reset != c.want || !got.Quotas[0].HasReset {
			t.Errorf("%s: %s: quotas %+v, want %q with a reset of %v", c.name, c.value, got.Quotas, c.quota, c.want)
		}
	}
	if got := parse(200, "X-RateLimit-Limit-Ms", "5"); len(got.Quotas) != 1 || got.Quotas[0].Name != "ms" {
		t.Errorf("quotas %+v, want one by the name of ms", got.Quotas)
	}
}

func TestRetryAfterInMilliseconds(t *testing.T) {
	for _, name := range []string{"Retry-After-Ms", "X-Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After", "X-RateLimit-Retry-After-Ms"} {
		for value, want := range map[string]time.Duration{
			"400": 400 * time.Millisecond, "1795176060000": time.Minute, "1795176000000": 0, "9999999999999999999": month,
		} {
			if got := parse(429, name, value, "Retry-After", "7"); got.RetryAfter != want || !got.HasRetryAfter {
				t.Errorf("%s: %s asks for %v, want %v", name, value, got.RetryAfter, want)
			}
		}
	}
	per := &headers.Dialect{Fields: []headers.Field{{Name: "X-Wait", Fact: headers.FactRetryAfter, Per: time.Minute}}}
	if got := per.Parse(response(429, "X-Wait", "3"), received); got.RetryAfter != 3*time.Minute {
		t.Errorf("RetryAfter = %v, want 3m", got.RetryAfter)
	}
}
