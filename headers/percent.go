package headers

import (
	"encoding/json"
	"time"
)

// A usage is what Meta tells of one kind of use: percentages, and minutes to
// wait. For an account of advertisements it tells seconds until the reset
// instead.
type usage struct {
	Type    string
	Calls   *float64 `json:"call_count"`
	CPUTime *float64 `json:"total_cputime"`
	Time    *float64 `json:"total_time"`
	App     *float64 `json:"app_id_util_pct"`
	Account *float64 `json:"acc_id_util_pct"`
	Minutes *float64 `json:"estimated_time_to_regain_access"`
	Seconds *float64 `json:"reset_time_duration"`
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
		percent *float64
	}{
		{"call_count", u.Calls},
		{"total_cputime", u.CPUTime},
		{"total_time", u.Time},
		{"app_id_util_pct", u.App},
		{"acc_id_util_pct", u.Account},
	} {
		if metric.percent == nil || *metric.percent < 0 {
			continue
		}
		q := r.quotaIn(f, clean(u.Type+"-"+metric.name))
		q.lowerLimit(100)
		q.lowerRemaining(max(0, 100-*metric.percent))
		if u.Seconds != nil && *u.Seconds >= 0 {
			q.delayReset(time.Duration(min(*u.Seconds, maxWait.Seconds())*float64(time.Second)), ResetUnknown)
		}
	}
	if u.Minutes != nil && *u.Minutes > 0 {
		wait := time.Duration(min(*u.Minutes, maxWait.Minutes()) * float64(time.Minute))
		r.sig.RetryAfter, r.sig.HasRetryAfter = max(r.sig.RetryAfter, wait), true
	}
}
