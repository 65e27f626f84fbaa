package headers

import (
	"bytes"
	"encoding/json"
	"time"
)

// A usage is what Meta reports of one kind of use: percentages, and minutes to
// wait. For an account of advertisements it reports seconds until the reset
// instead.
type usage struct {
	Type    string
	Calls   figure `json:"call_count"`
	CPUTime figure `json:"total_cputime"`
	Time    figure `json:"total_time"`
	App     figure `json:"app_id_util_pct"`
	Account figure `json:"acc_id_util_pct"`
	Minutes figure `json:"estimated_time_to_regain_access"`
	Seconds figure `json:"reset_time_duration"`
}

// A figure is a number in JSON, in quotes or not. One that is below zero, or that
// no float64 holds, is left out, and spoils nothing beside it.
type figure struct {
	number float64
	has    bool
}

func (f *figure) UnmarshalJSON(text []byte) error {
	text = bytes.Trim(text, `"`)
	if d, ok := parseDecimal(string(text)); ok { // of any length
		f.number, f.has = float64(d.whole)+float64(d.nanos)/1e9, true
		return nil
	}
	err := json.Unmarshal(text, &f.number)
	f.has = err == nil && f.number >= 0 && !bytes.Equal(text, []byte("null"))
	return nil
}

// percent reads {"call_count":28,...}, and {"id":[{"type":"...","call_count":28,...}]}.
func (r *reader) percent(f *Field, lines []string) {
	text := []byte(lines[0])
	one := usage{Type: f.Quota}
	if json.Unmarshal(text, &one) == nil {
		r.usage(f, &one)
	}
	var many map[string][]usage
	if json.Unmarshal(text, &many) != nil {
		return
	}
	for _, list := range many {
		for i := range list {
			r.usage(f, &list[i])
		}
	}
}

// usage makes a quota of each percentage.
func (r *reader) usage(f *Field, u *usage) {
	for _, metric := range [...]struct {
		name    string
		percent figure
	}{
		{"call_count", u.Calls},
		{"total_cputime", u.CPUTime},
		{"total_time", u.Time},
		{"app_id_util_pct", u.App},
		{"acc_id_util_pct", u.Account},
	} {
		if !metric.percent.has {
			continue
		}
		q := r.quotaIn(f, clean(u.Type+"-"+metric.name))
		q.lowerLimit(100)
		q.lowerRemaining(max(0, 100-metric.percent.number))
		if u.Seconds.has {
			q.delayReset(time.Duration(min(u.Seconds.number, maxWait.Seconds())*float64(time.Second)), ResetUnknown)
		}
	}
	if u.Minutes.has && u.Minutes.number > 0 {
		wait := time.Duration(min(u.Minutes.number, maxWait.Minutes()) * float64(time.Minute))
		r.sig.RetryAfter, r.sig.HasRetryAfter = max(r.sig.RetryAfter, wait), true
	}
}
