package headers_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/headers"
)

// A response names its bucket in one of two fields.
func TestParseNamesTheBucket(t *testing.T) {
	for _, test := range []struct {
		name   string
		fields []string
		want   string
	}{
		{"none", []string{"X-Ratelimit-Limit", "5"}, ""},
		{"Discord", []string{"X-Ratelimit-Bucket", "abcd1234"}, "abcd1234"},
		{"GitHub", []string{"X-Ratelimit-Resource", "core"}, "core"},
		{"both", []string{"X-Ratelimit-Resource", "core", "X-Ratelimit-Bucket", "abcd1234"}, "abcd1234"},
		{"empty", []string{"X-Ratelimit-Bucket", ""}, ""},
		{"64 bytes", []string{"X-Ratelimit-Bucket", strings.Repeat("b", 64)}, strings.Repeat("b", 64)},
		{"not ASCII", []string{"X-Ratelimit-Bucket", "b\xfc"}, ""},
		{"an escape", []string{"X-Ratelimit-Bucket", "b\x1b[31m"}, ""},
		{"65 bytes", []string{"X-Ratelimit-Bucket", strings.Repeat("b", 65)}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := headers.Parse(response(http.StatusOK, with(test.fields...)...), received).Bucket; got != test.want {
				t.Errorf("bucket = %q, want %q", got, test.want)
			}
		})
	}
}

// ParseHeader without an instant reads instants as of the present.
func TestParseHeaderReadsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		then := time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat)
		signal, _ := (*headers.Dialect)(nil).ParseHeader(response(http.StatusTooManyRequests, "Retry-After", then), time.Time{})
		if want := 30 * time.Second; signal.RetryAfter != want {
			t.Errorf("Retry-After: %s is %v away, want %v", then, signal.RetryAfter, want)
		}
	})
}
