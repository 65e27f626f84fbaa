package headers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/headers"
)

// An invalid number affects neither another figure's quota nor the wait.
func TestPercentOfHostileNumbers(t *testing.T) {
	meta, _ := headers.Lookup("Meta Graph")
	for _, c := range []struct {
		value string
		left  float64 // of total_time; below zero: no such quota
		wait  time.Duration
	}{
		{`{"total_time":25}`, 75, 0},
		{`{"total_time":25.5,"call_count":1e400,"total_cputime":"x"}`, 74.5, 0},
		{`{"total_time":"25","call_count":{"total_time":1}}`, 75, 0},
		{`{"total_time":130}`, 0, 0},
		{`{"total_time":` + strings.Repeat("9", 9000) + `}`, 0, 0},
		{`{"total_time":1e400}`, -1, 0},
		{`{"total_time":-0}`, 100, 0},
		{`{"total_time":1.3e2}`, 0, 0},
		{`{"total_time":"0x10"}`, -1, 0},
		{`{"total_time":-25}`, -1, 0},
		{`{"total_time":null}`, -1, 0},
		{`{"total_time":"NaN"}`, -1, 0},
		{`{"total_time":NaN}`, -1, 0},
		{`{"total_time":25,"total_time":30}`, 70, 0},
		{`{"total_time":` + strings.Repeat("[", 8000) + `}`, -1, 0},
		{`{"1":[{"type":"","call_count":1e400,"total_time":100,"estimated_time_to_regain_access":5}]}`, 0, 5 * time.Minute},
		{`{"1":[{"type":"","total_time":100,"estimated_time_to_regain_access":` + strings.Repeat("9", 400) + `}]}`, 0, month},
		{`{"1":[{"type":"","total_time":100,"estimated_time_to_regain_access":-5}]}`, 0, 0},
	} {
		got := meta.Parse(response(400, "X-Business-Use-Case-Usage", c.value), received)
		left := -1.0
		for _, q := range got.Quotas {
			if strings.HasSuffix(q.Name, "-total_time") {
				left = q.Remaining
			}
		}
		if left != c.left || got.RetryAfter != c.wait {
			t.Errorf("%.80s: %v left, wait %v, want %v, %v", c.value, left, got.RetryAfter, c.left, c.wait)
		}
	}
}
