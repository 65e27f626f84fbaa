package testserver_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

func TestResetFormatsRound(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 500_000_000, time.UTC)
	tests := []struct {
		name  string
		as    testserver.ResetFormat
		reset time.Duration
		want  string
	}{
		{"epoch seconds", testserver.EpochSeconds, 501 * time.Millisecond, "1772366402"},
		{"epoch seconds, down", testserver.EpochTruncated, 499 * time.Millisecond, "1772366400"},
		{"epoch milliseconds", testserver.EpochMillis, 1500 * time.Microsecond, "1772366400502"},
		{"epoch with decimals", testserver.EpochFraction, 1500 * time.Microsecond, "1772366400.502"},
		{"date-time", testserver.DateTime, 501 * time.Millisecond, "2026-03-01T12:00:02Z"},
		{"seconds", testserver.DeltaSeconds, 1001 * time.Millisecond, "2"},
		{"seconds, down", testserver.DeltaTruncated, 1999 * time.Millisecond, "1"},
		{"milliseconds", testserver.DeltaMillis, 1500 * time.Microsecond, "2"},
		{"decimals", testserver.DeltaFraction, 64*time.Second + 56_500*time.Microsecond, "64.057"},
		{"units, minutes", testserver.DeltaUnits, 6 * time.Minute, "6m0s"},
		{"units, milliseconds", testserver.DeltaUnits, 119_500 * time.Microsecond, "120ms"},
		{"units, none", testserver.DeltaUnits, 0, "0s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.as(now, tt.reset); got != tt.want {
				t.Errorf("%v after %v = %q, want %q", tt.reset, now, got, tt.want)
			}
		})
	}
}
