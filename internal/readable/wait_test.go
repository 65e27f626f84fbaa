package readable

import (
	"testing"
	"time"
)

func TestWaitIsShortAndNotLonger(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 999: "999ns", 1_234_567: "1.2ms", 999_999_999: "999.9ms", 58_526_150_560: "58.5s",
		75_999_999_999: "1m15s", time.Hour: "1h0m0s",
	} {
		if got := Wait(d).String(); got != want {
			t.Errorf("Wait(%d) = %s, want %s", d, got, want)
		}
	}
}
