package headers

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxTelling bounds, in bytes, a text of a body that is looked through for a
// refusal or a wait if the dialect says nothing of it.
const maxTelling = 256

// refusingFields are header fields of gateways that many vendors use under
// hosts of their own. They refuse with 400, 403 or 503.
var refusingFields = [...]Field{
	{Name: "X-Amzn-Errortype", Tells: FactRefusal, Words: awsRefusals},
	{Name: "X-Envoy-Ratelimited", Tells: FactRefusal, Words: map[string]Scope{"true": ScopeUnknown}},
	{Name: "X-Envoy-Overloaded", Tells: FactRefusal, Words: map[string]Scope{"true": ScopeUnknown}},
	{Name: "X-Mashery-Error-Code", Tells: FactRefusal, Words: masheryRefusals},
}

// awsRefusals are the exceptions by which AWS throttles. What names the service
// may stand before, an address after.
var awsRefusals = map[string]Scope{
	"*Throttl*":                       ScopeUnknown, // Throttling, ThrottlingException, ThrottledException, RequestThrottled
	"*ProvisionedThroughputExceeded*": ScopeUnknown,
	"*RequestLimitExceeded*":          ScopeUnknown,
	"*RequestRateTooLarge*":           ScopeUnknown,
	"*BandwidthLimitExceeded*":        ScopeUnknown,
	"LimitExceededException*":         ScopeUnknown,
	"*#LimitExceededException*":       ScopeUnknown, // not ResourceNumberLimitExceededException
	"*TooManyRequests*":               ScopeUnknown,
	"*TransactionInProgress*":         ScopeRequest,
	"*SlowDown":                       ScopeUnknown,
	"*PriorRequestNotComplete*":       ScopeRequest,
}

var masheryRefusals = map[string]Scope{
	"ERR_403_DEVELOPER_OVER_QPS":  ScopeCredential,
	"ERR_403_DEVELOPER_OVER_RATE": ScopeCredential,
}

// asksAnybody reports whether the body may tell that the request was refused,
// or for how long, by the rules for all vendors.
func (r *reader) asksAnybody() bool {
	if r.sig.Throttled {
		_, told := r.sig.Wait()
		return !told
	}
	return r.mayRefuse()
}

// mayRefuse reports whether vendors refuse for now under this status by the
// body alone.
func (r *reader) mayRefuse() bool {
	switch r.resp.StatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// anybody reads a value of the body by the rules for all vendors, which go by
// the value's key.
func (r *reader) anybody(at path, value string) {
	key, told := at.toldByError()
	if !told || len(value) > maxTelling {
		return
	}
	switch key {
	case "retryafter", "retryafterseconds", "retryaftersecs", "retryaftersec":
		r.heal(value, time.Second)
	case "retryafterms", "retryaftermillis", "retryaftermilliseconds":
		r.heal(value, time.Millisecond)
	case "code", "status", "statuscode", "errorcode":
		if value == "429" || isRefusalCode(value) {
			r.refuse()
		}
	case "type", "errortype", "error", "errors", "reason", "title":
		if isRefusalCode(value) || r.isRefusalText(value) {
			r.refuse()
		}
	case "name", "id": // a plug-in's is "rate-limiting"
		if isRefusalCode(value) && !strings.HasSuffix(value, "ing") {
			r.refuse()
		}
	case "message", "msg", "errormessage", "errormsg", "description", "errordescription", "detail", "faultstring":
		if r.isRefusalText(value) {
			r.refuse()
		}
	}
}

// heal notes a wait that the body tells by the rules for all vendors. It counts
// only if nothing else tells one. More than an hour may be a number in another
// unit, and is left out.
func (r *reader) heal(value string, per time.Duration) {
	wait, ok := r.delay(value, per)
	if ok && wait <= time.Hour {
		r.healing = max(r.healing, wait)
	}
}

// settleAnybody makes the wait that heal noted the one of the refusal. A 403 or
// 503 with such a wait is a refusal.
func (r *reader) settleAnybody() {
	if status := r.resp.StatusCode; r.healing > 0 && !r.sig.HasRetryAfter &&
		(r.sig.Throttled || status == http.StatusForbidden || status == http.StatusServiceUnavailable) {
		r.sig.RetryAfter, r.sig.HasRetryAfter = r.healing, true
		r.judge()
	}
}

// refuse notes a refusal that the body tells by the rules for all vendors.
func (r *reader) refuse() {
	if r.mayRefuse() && r.refusal == "" {
		r.refusal = ReasonBody
	}
}

// toldByError returns the key of the value at the path, in small letters and
// without what divides its words. Told is true if everything around the value
// is an error; otherwise the value may be what the request had sent.
func (p path) toldByError() (key string, told bool) {
	for _, step := range p {
		if !step.object {
			continue
		}
		if key != "" && !slices.Contains(errorKeys[:], key) {
			return "", false
		}
		if len(step.key) > 32 {
			return "", false
		}
		key = squeeze(step.key)
	}
	return key, true
}

// errorKeys are the keys of objects that hold an error.
var errorKeys = [...]string{
	"error", "errors", "fault", "exception", "innererror", "extensions", "response", "errorresponse", "status", "meta",
}

// isRefusalCode reports whether a word without spaces is the name of a refusal
// for now: rate_limit_exceeded, TooManyRequests, ThrottlingException. The name
// of a mistake in a request about a limit is not one.
func isRefusalCode(word string) bool {
	if len(word) > maxName || strings.ContainsAny(word, " \t\r\n/") {
		return false
	}
	slowDown := word == "SlowDown" // "slow_down" is for clients that poll (RFC 8628)
	word = squeeze(word)
	for _, other := range [...]string{"invalid", "missing", "unknown", "notfound", "notallowed", "unsupported", "disabled", "required"} {
		if strings.Contains(word, other) {
			return false
		}
	}
	return slowDown || strings.Contains(word, "requestlimitexceeded") || strings.Contains(word, "toomanyrequests") ||
		strings.Contains(word, "throttl") || isRateLimited(word)
}

// isRateLimited reports whether a squeezed word says that a rate limit was met:
// ratelimit, ratelimited, ratelimitexceeded.
func isRateLimited(word string) bool {
	_, rest, ok := strings.Cut(word, "ratelimit")
	return ok && (rest == "" || strings.HasPrefix(rest, "e") || strings.HasPrefix(rest, "reach") || rest == "hit")
}

// isRefusalText reports whether a sentence begins like one that refuses for
// now. Under a 400 fewer beginnings count, because it may tell of a batch that
// holds too many requests.
func (r *reader) isRefusalText(text string) bool {
	if len(text) > maxTelling {
		return false
	}
	text = strings.TrimRight(strings.ToLower(text), ".! \r\n")
	for _, start := range [...]string{"rate limit exceeded", "rate limit reached", "rate exceeded", "api rate limit", "request rate limit exceeded"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	if text == "too many requests" || r.resp.StatusCode == http.StatusBadRequest {
		return text == "too many requests"
	}
	for _, start := range [...]string{"too many requests", "request was throttled", "throttle limit", "you have exceeded your rate limit", "you have exceeded the rate limit"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// squeeze returns a word in small letters, without what divides its parts.
func squeeze(word string) string {
	text := make([]byte, 0, len(word))
	for i := range len(word) {
		switch c := word[i]; {
		case 'A' <= c && c <= 'Z':
			text = append(text, c|0x20)
		case c == '_', c == '-', c == ' ', c == '.':
		default:
			text = append(text, c)
		}
	}
	return string(text)
}
