package main

import (
	"fmt"
	"time"

	"github.com/weirgo/weir/examples/internal/chart"
)

func acceptedName(r result) string {
	if r.remote {
		return "sent, not refused"
	}
	return "accepted"
}

func limitName(r result, width time.Duration) string {
	whose := "the vendor's limit"
	if r.remote {
		whose = "Weir's limit"
	}
	rate := r.limit.PerSecond()
	return fmt.Sprintf("%s: %.3g/s, which is %.3g per %s, and a burst of %d",
		whose, rate, rate*width.Seconds(), chart.Spaced(width), r.limit.Burst)
}
