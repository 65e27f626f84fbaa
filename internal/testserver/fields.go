package testserver

import (
	"net/http"
	"strconv"
	"time"
)

// Fields name the header fields in which a vendor reports its tightest limit.
// An empty name means that the vendor does not report that fact.
type Fields struct {
	Limit, Remaining, Reset string

	As ResetFormat // how the reset is written; nil: DeltaSeconds
}

// Write is a [Style] that writes the fields.
func (f Fields) Write(h http.Header, d Decision) {
	if s, ok := d.Tightest(); ok {
		f.write(h, d, s)
	}
}

func (f Fields) write(h http.Header, d Decision, s Standing) {
	if f.Limit != "" {
		h.Set(f.Limit, strconv.Itoa(s.Limit.Quota()))
	}
	if f.Remaining != "" {
		h.Set(f.Remaining, strconv.Itoa(s.Remaining))
	}
	if f.Reset == "" || s.Limit.Per == 0 || s.Reset < 0 {
		return
	}
	as := f.As
	if as == nil {
		as = DeltaSeconds
	}
	h.Set(f.Reset, as(d.Now, s.Reset))
}

// A ResetFormat writes a reset that is in d from now, rounded up to its unit.
type ResetFormat func(now time.Time, reset time.Duration) string

// EpochSeconds writes whole seconds since 1970 (GitHub, Okta, Auth0).
func EpochSeconds(now time.Time, reset time.Duration) string {
	return strconv.FormatInt(epoch(now.Add(reset)), 10)
}

// EpochTruncated writes whole seconds since 1970, rounded down: a reset within the
// second is in the past when it is read (Auth0).
func EpochTruncated(now time.Time, reset time.Duration) string {
	return strconv.FormatInt(now.Add(reset).Unix(), 10)
}

// EpochMillis writes milliseconds since 1970 (Linear, Bybit).
func EpochMillis(now time.Time, reset time.Duration) string {
	return strconv.FormatInt(now.Add(reset+time.Millisecond-1).UnixMilli(), 10)
}

// EpochFraction writes seconds since 1970 with three decimals (Discord).
func EpochFraction(now time.Time, reset time.Duration) string {
	return fraction(now.Add(reset + time.Millisecond - 1).UnixMilli())
}

// DateTime writes a date-time of RFC 3339 in whole seconds (Anthropic).
func DateTime(now time.Time, reset time.Duration) string {
	return time.Unix(epoch(now.Add(reset)), 0).UTC().Format(time.RFC3339)
}

// DeltaSeconds writes whole seconds from now (Zendesk, the IETF drafts).
func DeltaSeconds(_ time.Time, reset time.Duration) string { return inUnits(reset, time.Second) }

// DeltaTruncated writes whole seconds from now, rounded down.
func DeltaTruncated(_ time.Time, reset time.Duration) string {
	return strconv.FormatInt(int64(reset/time.Second), 10)
}

// DeltaMillis writes milliseconds from now (KuCoin).
func DeltaMillis(_ time.Time, reset time.Duration) string { return inUnits(reset, time.Millisecond) }

// DeltaFraction writes seconds from now with three decimals (Discord, Printful).
func DeltaFraction(_ time.Time, reset time.Duration) string {
	return fraction(ceil(int64(reset), int64(time.Millisecond)))
}

// DeltaUnits writes a duration with its units, such as 6m0s or 120ms (OpenAI,
// Groq).
func DeltaUnits(_ time.Time, reset time.Duration) string {
	return (time.Duration(ceil(int64(reset), int64(time.Millisecond))) * time.Millisecond).String()
}

// fraction returns milliseconds as seconds.
func fraction(millis int64) string {
	return strconv.FormatFloat(float64(millis)/1000, 'f', 3, 64)
}
