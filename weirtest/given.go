package weirtest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The fields whose times count on every refusal, and those that count only on one
// by the limits or a fault: beside the 429 of a handler, a reset may be that of
// permits that remain.
var (
	waits  = []string{"Retry-After", "Retry-After-Ms"}
	resets = slices.Concat(waits, []string{
		"RateLimit", "RateLimit-Reset", "X-RateLimit-Reset", "X-RateLimit-Reset-After", "X-Rate-Limit-Reset",
		"X-RateLimit-Reset-Requests", "Anthropic-RateLimit-Requests-Reset",
	})
)

// given returns the earliest time that the fields of an answer give, and the field
// with its value. It returns the zero time if they give no time.
func given(h http.Header, fields []string, now time.Time) (at time.Time, field string) {
	for _, name := range fields {
		for _, value := range h.Values(name) {
			t := time.Time{}
			switch name {
			case "Retry-After-Ms":
				t = timeOf(value+"ms", now)
			case "RateLimit":
				t = spent(value, now)
			default:
				t = timeOf(value, now)
			}
			if !t.IsZero() && (at.IsZero() || t.Before(at)) {
				at, field = t, name+": "+value
			}
		}
	}
	return at, field
}

// epochFrom is the number from which seconds count from 1970, and not from now:
// about three years.
const epochFrom = 1e8

// timeOf reads a date, a duration with its units, seconds from now, or seconds
// since 1970. It returns the zero time for any other value.
func timeOf(value string, now time.Time) time.Time {
	if t, err := http.ParseTime(value); err == nil {
		return t
	}
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		return now.Add(d)
	}
	switch s, err := strconv.ParseFloat(value, 64); {
	case err != nil || !(s >= 0 && s < 100*epochFrom): // NaN, too
		return time.Time{}
	case s >= epochFrom:
		return time.UnixMilli(int64(s*1000 + 0.5))
	default:
		return now.Add(time.Duration(s * float64(time.Second)))
	}
}

// spent returns the latest reset of the limits in a RateLimit field that are spent:
// 1 s from now for "minute";r=3;t=40, "second";r=0;t=1.
func spent(value string, now time.Time) (at time.Time) {
	for member := range strings.SplitSeq(value, ",") {
		if _, reset, ok := strings.Cut(member, ";r=0;t="); ok && timeOf(reset, now).After(at) {
			at = timeOf(reset, now)
		}
	}
	return at
}
