package headers

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxSentence bounds, in bytes, the texts in a body that are searched for a refusal or
// a wait by the rules for all vendors.
const maxSentence = 256

// refusingFields are header fields of gateways that many vendors use under
// hosts of their own. They refuse with 400, 403 or 503.
var refusingFields = [...]Field{
	{Name: "X-Amzn-Errortype", Fact: FactRefusal, Words: awsRefusals},
	{Name: "X-Envoy-Ratelimited", Fact: FactRefusal, Words: map[string]Scope{"true": ScopeUnknown}},
	{Name: "X-Envoy-Overloaded", Fact: FactRefusal, Words: map[string]Scope{"true": ScopeUnknown}},
	{Name: "X-Mashery-Error-Code", Fact: FactRefusal, Words: masheryRefusals},
}

// awsRefusals are the exceptions by which AWS throttles. The service's name may precede, an address
// may follow.
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

// asksGeneric reports whether the body may state that the request was refused,
// or for how long, by the rules for all vendors.
func (r *reader) asksGeneric() bool {
	if r.sig.Throttled {
		_, ok := r.sig.Wait()
		return !ok
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

// genericHint reads a value of the body by the rules for all vendors, which go by
// the value's key.
func (r *reader) genericHint(at path, value string) {
	key, ok := at.byError()
	if !ok {
		return
	}
	if per, ok := waitUnitOf(key); ok {
		r.noteWait(value, per)
		return
	}
	switch asked := keysOfRefusals[key]; {
	case asked&asCode != 0 && isRefusalCode(value),
		asked&asName != 0 && isRefusalCode(value) && !strings.HasSuffix(value, "ing"),
		asked&asNumber != 0 && value == "429",
		asked&asText != 0 && r.isRefusalText(value):
		r.refuse()
	}
}

// keysOfRefusals are the keys, squeezed, under which vendors name a refusal, with their kinds of
// value.
var keysOfRefusals = map[string]uint8{
	"code": asCode | asNumber, "status": asCode | asNumber, "statuscode": asCode | asNumber, "errorcode": asCode | asNumber,
	"type": asCode | asText, "errortype": asCode | asText, "error": asCode | asText, "errors": asCode | asText,
	"reason": asCode | asText, "title": asCode | asText, "exception": asCode | asText, "exceptioncode": asCode,
	"name": asName, "id": asName,
	"message": asText, "msg": asText, "errormessage": asText, "errormsg": asText, "description": asText,
	"errordescription": asText, "detail": asText, "faultstring": asText,
}

// The ways in which a value names a refusal.
const (
	asCode   uint8 = 1 << iota // a word without spaces
	asName                     // such a word, but not that of a plug-in: "rate-limiting"
	asNumber                   // 429
	asText                     // a sentence
)

// waitUnitOf returns the unit of the wait under a squeezed key, such as "retryafter" or
// "retryinms". The unit is zero for seconds or an instant.
func waitUnitOf(key string) (per time.Duration, ok bool) {
	for _, name := range [...]string{"retryafter", "retryin", "retrydelay"} {
		if unit, is := strings.CutPrefix(key, name); is {
			switch unit {
			case "", "s", "sec", "secs", "seconds", "inseconds":
				return 0, true
			case "ms", "millis", "milliseconds", "inmilliseconds":
				return time.Millisecond, true
			}
		}
	}
	return 0, false
}

// noteWait notes a wait that the body states by the rules for all vendors. It counts
// only if nothing else states one. More than an hour may be a number in another
// unit, and is left out.
func (r *reader) noteWait(value string, per time.Duration) {
	wait, ok := r.reset(trim(value), per)
	if ok && wait <= time.Hour {
		r.bodyWait = max(r.bodyWait, wait)
	}
}

// settleGeneric makes the wait that noteWait noted the one of the refusal. A 403 or
// 503 with such a wait is a refusal.
func (r *reader) settleGeneric() {
	if status := r.resp.StatusCode; r.bodyWait > 0 && !r.sig.HasRetryAfter &&
		(r.sig.Throttled || status == http.StatusForbidden || status == http.StatusServiceUnavailable) {
		r.sig.RetryAfter, r.sig.HasRetryAfter = r.bodyWait, true
		r.judge()
	}
}

// refuse notes a refusal that the body states by the rules for all vendors.
func (r *reader) refuse() {
	if r.mayRefuse() && r.refusal == "" {
		r.refusal = ReasonBody
	}
}

// byError returns the key of the value at the path, in small letters and without separators of
// words. It is ok if everything around the value is an error; otherwise the value may be part of
// the request.
func (p path) byError() (key string, ok bool) {
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
		key = squeeze(string(step.key))
	}
	return key, true
}

// errorKeys are the keys of objects that hold an error.
var errorKeys = [...]string{
	"error", "errors", "fault", "exception", "innererror", "extensions", "response", "errorresponse", "status", "meta",
	"details", // of google.rpc.Status, which holds a RetryInfo
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
	return slowDown || isRateLimited(word) ||
		slices.ContainsFunc(refusalWords[:], func(refusal string) bool { return strings.Contains(word, refusal) })
}

// refusalWords are parts of the names of refusals, squeezed. A quota or a limit
// alone is not one of them, because it may be that of a file.
var refusalWords = [...]string{
	"throttl", "toomanyrequests", "requestlimitexceeded", "calllimitexceeded", "qpslimit", "overquerylimit",
	"toomanyconcurrent", "concurrencylimitexceeded", "concurrentlimitexceeded",
	"resourceexhausted", // gRPC's code 8, under whatever status a gateway maps it to
}

// isRateLimited reports whether a squeezed word says that a rate limit was met:
// ratelimit, ratelimited, ratelimitexceeded.
func isRateLimited(word string) bool {
	_, rest, ok := strings.Cut(word, "ratelimit")
	return ok && (rest == "" || strings.HasPrefix(rest, "e") || strings.HasPrefix(rest, "reach") || rest == "hit")
}

// isRefusalText reports whether a sentence begins like one that refuses for
// now. Under a 400 fewer beginnings count, because it may be about a batch that
// holds too many requests.
func (r *reader) isRefusalText(text string) bool {
	if len(text) > maxSentence {
		return false
	}
	text = strings.TrimRight(strings.ToLower(text), ".! \r\n")
	for _, start := range [...]string{"rate limit exceeded", "rate limit reached", "rate exceeded", "api rate limit", "user rate limit exceeded", "request rate limit exceeded"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	// "Rate limited keys may not call this" is no refusal for now.
	if rest, ok := strings.CutPrefix(text, "rate limited"); ok && !strings.HasPrefix(rest, " ") {
		return true
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
