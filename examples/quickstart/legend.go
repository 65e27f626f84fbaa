package main

import (
	"fmt"
	"time"
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
	rate := perSecond(r.limit)
	return fmt.Sprintf("%s: %.3g/s, which is %.3g per %s, and a burst of %d",
		whose, rate, rate*width.Seconds(), spaced(width), r.limit.Burst)
}

// spaced writes a bar's width: "100 ms", "10 s".
func spaced(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
