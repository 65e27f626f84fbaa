package headers_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/headers"
)

// refusesBy returns a dialect whose bodies refuse by a word at a path.
func refusesBy(f headers.Field) *headers.Dialect {
	f.Fact = headers.FactRefusal
	return &headers.Dialect{Body: []headers.Field{f}}
}

func TestRefusalInBody(t *testing.T) {
	slow := map[string]headers.Scope{"SlowDown": headers.ScopeRoute, "*too fast*": 0}
	refused := headers.Signal{Throttled: true, Reason: headers.ReasonBody, Scope: headers.ScopeRoute}
	plain := headers.Signal{Throttled: true, Reason: headers.ReasonBody}
	for _, c := range []struct {
		name, path, mediaType, text string
		want                        headers.Signal
	}{
		{"XML", "Error.Code", "application/xml", `<?xml version="1.0"?><Error><Code> SlowDown </Code></Error>`, refused},
		{"XML with name spaces and attributes", "e.Errors.*.Code", "text/xml; charset=utf-8", `<a:e xmlns:a="x"><Errors id="1"><Error><Code>SlowDown</Code></Error></Errors></a:e>`, refused},
		{"XML cut off", "Error.Code", "application/xml", `<Error><Code>SlowDown</Code><Message>pl`, refused},
		{"XML of an unstated type", "Error.Code", "", `<Error><Code>SlowDown</Code></Error>`, refused},
		{"XML elsewhere", "Error.Code", "application/xml", `<Error><Detail><Code>SlowDown</Code></Detail></Error>`, headers.Signal{}},
		{"XML of closing tags", "Error.Code", "application/xml", `</a></b><Error><Code>SlowDown</Code></Error>`, refused},
		{"XML too deep", "*.*", "application/xml", strings.Repeat("<a>", 5000) + "SlowDown", headers.Signal{}},
		{"not XML", "Error.Code", "application/xml", `Error Code SlowDown`, headers.Signal{}},
		{"text", "", "text/plain", " You are too fast.\n", plain},
		{"text of a page", "", "text/html; charset=utf-8", "<h1>You are too fast</h1>", plain},
		{"text of JSON", "", "application/json", `{"message":"too fast"}`, plain},
		{"text with another meaning", "", "text/plain", "You are not allowed.", headers.Signal{}},
		{"a JSON key that is empty is no text", "", "application/json", `{"":"SlowDown"}`, headers.Signal{}},
		{"JSON that is called text", "Error.Code", "text/plain; charset=utf-8", `{"Error":{"Code":"SlowDown"}}`, refused},
		{"JSON of a type of its own", "Error.Code", "application/graphql-response+json", `{"Error":{"Code":"SlowDown"}}`, refused},
		{"JSON in a stream", "Error.Code", "application/stream+json", `{"Error":{"Code":"SlowDown"}}`, headers.Signal{}},
		{"XML of a type of its own", "Error.Code", "application/soap+xml", `<Error><Code>SlowDown</Code></Error>`, refused},
		{"a page where a path is sought", "Error.Code", "text/html", `<Error><Code>SlowDown</Code></Error>`, headers.Signal{}},
		{"JSON true", "slow", "application/json", `{"slow":true}`, headers.Signal{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, _ := bodied(400, c.text, "Content-Type", c.mediaType)
			got := refusesBy(headers.Field{Name: c.path, Words: slow}).Parse(resp, received)
			if !equal(got, c.want) {
				t.Errorf("Parse = %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestValueInSentence(t *testing.T) {
	for _, c := range []struct {
		text  string
		after string
		want  time.Duration // -1: none
	}{
		{"Please try again in 20 seconds.", "again in ", 20 * time.Second},
		{"Please try again in 20s. Visit us", "again in ", 20 * time.Second},
		{"Please try again in 6m0s.", "again in ", 6 * time.Minute},
		{"try again in 120ms", "again in ", 120 * time.Millisecond},
		{"try again in 2.5 minutes, please", "again in ", 150 * time.Second},
		{"wait 3 Hours", "wait ", 3 * time.Hour},
		{"wait 1 day", "wait ", 24 * time.Hour},
		{"wait 250 milliseconds", "wait ", 250 * time.Millisecond},
		{"wait 7", "wait ", 7 * time.Second},
		{"banned until 1795176060000. Go away", "until ", time.Minute},
		{"after '2026-11-20T12:00:30Z'", "after ", 30 * time.Second},
		{"try again after '17' minutes", "after ", 17 * time.Minute},
		{"wait 1 minute 30 seconds", "wait ", 90 * time.Second},
		{"wait 1 Minute, and 30.5 Seconds.", "wait ", 90500 * time.Millisecond},
		{"wait 1 hour and 5 minutes, please", "wait ", 65 * time.Minute},
		{"wait 1 day, 2 hrs, 3 mins, 4 secs", "wait ", 26*time.Hour + 3*time.Minute + 4*time.Second},
		{"wait 1h 30m 5s.", "wait ", 90*time.Minute + 5*time.Second},
		{"wait 1 minute(s), 30 second(s)", "wait ", 90 * time.Second},
		{"wait 1h, 30m", "wait ", 90 * time.Minute},
		{"wait 20s. 10 minutes are too long", "wait ", 20 * time.Second},
		{"wait 1min 30sec", "wait ", 90 * time.Second},
		{"wait 2hrs", "wait ", 2 * time.Hour},
		{"wait 1 hr", "wait ", time.Hour},
		{"wait 5 m", "wait ", 5 * time.Minute},
		{"wait 5 msec", "wait ", 5 * time.Millisecond},
		{"wait 20 seconds. 10 minutes are too long", "wait ", 20 * time.Second},
		{"wait 20 seconds 5 requests", "wait ", 20 * time.Second},
		{"wait 20 seconds 5", "wait ", 20 * time.Second},
		{"wait 20 minimum", "wait ", 20 * time.Second},
		{"wait 20 seconds and then retry", "wait ", 20 * time.Second},
		{"wait 99999999999999999999 days 1 second", "wait ", 31 * 24 * time.Hour},
		{"wait", "wait ", -1},
		{"wait ", "wait ", -1},
		{"wait a minute", "wait ", -1},
		{"wait -3 seconds", "wait ", -1},
		{"go", "wait ", -1},
	} {
		d := &headers.Dialect{Body: []headers.Field{{Name: "message", After: c.after, Fact: headers.FactRetryAfter}}}
		resp, _ := bodied(429, `{"message":"`+c.text+`"}`)
		got := d.Parse(resp, received)
		if got.HasRetryAfter != (c.want >= 0) || got.RetryAfter != max(c.want, 0) {
			t.Errorf("%q: RetryAfter = %v, %v, want %v", c.text, got.RetryAfter, got.HasRetryAfter, c.want)
		}
	}
}

// A row applies under its statuses and conditions; otherwise the next row does, and then the
// general rules.
func TestFieldConditions(t *testing.T) {
	d := &headers.Dialect{Fields: []headers.Field{
		{Name: "Retry-After", Fact: headers.FactRetryAfter, Per: time.Millisecond, If: map[string]string{":path": "/v1/*"}},
		{Name: "Retry-After", Fact: headers.FactRetryAfter, Per: time.Minute, If: map[string]string{"X-Version": "2"}},
		{Name: "Retry-After", Fact: headers.FactRetryAfter, Per: time.Hour, Statuses: []int{503}, If: map[string]string{"X-Version": ""}},
	}}
	for _, c := range []struct {
		path, version string
		status        int
		want          time.Duration
	}{
		{"/v1/things", "", 429, 30 * time.Millisecond},
		{"/v2/things", "2", 429, 30 * time.Minute},
		{"/v2/things", "", 503, 30 * time.Hour},
		{"/v2/things", "", 429, 30 * time.Second},
		{"/v2/things", "3", 503, 30 * time.Second},
	} {
		resp := response(c.status, "Retry-After", "30")
		resp.Request.URL = &url.URL{Path: c.path}
		if c.version != "" {
			resp.Header.Set("X-Version", c.version)
		}
		if got := d.Parse(resp, received); got.RetryAfter != c.want {
			t.Errorf("%+v: RetryAfter = %v, want %v", c, got.RetryAfter, c.want)
		}
	}
	resp := response(429, "Retry-After", "30")
	resp.Request = nil
	if got := d.Parse(resp, received); got.RetryAfter != 30*time.Second {
		t.Errorf("without a request: RetryAfter = %v, want 30s", got.RetryAfter)
	}
}

func TestBodyFieldConditions(t *testing.T) {
	d := refusesBy(headers.Field{Name: "code", Words: map[string]headers.Scope{"7": 0}, Statuses: []int{400}})
	for status, want := range map[int]bool{400: true, 404: false} {
		resp, body := bodied(status, `{"code":7}`)
		if got := d.Parse(resp, received); got.Throttled != want || body.read > 0 != want {
			t.Errorf("%d: Throttled = %v with %d bytes read, want %v", status, got.Throttled, body.read, want)
		}
	}
}

// Rows for a refusal that did nothing, and for a status that is no refusal.
func TestWhatWordsPromise(t *testing.T) {
	d := &headers.Dialect{Scope: headers.ScopeLane, Body: []headers.Field{
		{Name: "code", Fact: headers.FactRefusal, Words: map[string]headers.Scope{"early": 0}, NotProcessed: true},
		{Name: "code", Fact: headers.FactRefusal, Words: map[string]headers.Scope{"late": 0}},
		{Name: "code", Fact: headers.FactNoRefusal, Words: map[string]headers.Scope{"busy": headers.ScopeRoute}},
	}}
	for _, c := range []struct {
		status int
		text   string
		want   headers.Signal
	}{
		{503, `{"code":"early"}`, headers.Signal{Throttled: true, NotProcessed: true, Reason: headers.ReasonBody, Scope: headers.ScopeLane}},
		{503, `{"code":"late"}`, headers.Signal{Throttled: true, Reason: headers.ReasonBody, Scope: headers.ScopeLane}},
		{429, `{"code":"busy"}`, headers.Signal{}},
		{503, `{"code":"busy"}`, headers.Signal{}},
	} {
		resp, _ := bodied(c.status, c.text)
		if got := d.Parse(resp, received); !equal(got, c.want) {
			t.Errorf("%d %s: Parse = %+v, want %+v", c.status, c.text, got, c.want)
		}
	}
}

func TestStatusesThatRefuse(t *testing.T) {
	d := &headers.Dialect{Refuses: []int{418}, RefusesWithWait: []int{200, 202}, RefusesByQuota: []int{400, 403}}
	wait := []string{"Retry-After", "5"}
	none := []string{"X-RateLimit-Remaining", "0"}
	some := []string{"X-RateLimit-Remaining", "1"}
	for _, c := range []struct {
		status int
		fields []string
		want   headers.Reason
	}{
		{418, nil, headers.ReasonStatus}, {200, wait, headers.ReasonStatus}, {202, wait, headers.ReasonStatus},
		{200, nil, ""}, {200, none, ""}, {201, wait, ""},
		{400, none, headers.ReasonStatus}, {400, some, ""}, {400, wait, ""},
		{403, none, headers.Reason403}, {403, some, ""},
	} {
		if got := d.Parse(response(c.status, c.fields...), received); got.Reason != c.want || got.Throttled != (c.want != "") {
			t.Errorf("%d %q: Throttled = %v, Reason = %q, want %q", c.status, c.fields, got.Throttled, got.Reason, c.want)
		}
	}
	for status, want := range map[int]bool{200: true, 201: false, 202: true, 302: false} {
		if got := d.CanRefuse(status); got != want {
			t.Errorf("CanRefuse(%d) = %v, want %v", status, got, want)
		}
	}
}

// The wait is the missing part of the quota divided by the rate.
func TestWaitForWhatComesBack(t *testing.T) {
	d := &headers.Dialect{BodyOfSuccess: true, Body: []headers.Field{
		{Name: "error", Fact: headers.FactRefusal, Words: map[string]headers.Scope{"slow": 0}},
		{Name: "left", Fact: headers.FactRemaining, Quota: "q"},
		{Name: "cost", Fact: headers.FactCost, Quota: "q"},
		{Name: "rate", Fact: headers.FactRate, Quota: "q"},
	}}
	for _, c := range []struct {
		text string
		want time.Duration // -1: none
	}{
		{`{"error":"slow","left":3,"cost":101,"rate":50}`, 1960 * time.Millisecond},
		{`{"rate":50.0,"cost":101.0,"left":3.0,"error":"slow"}`, 1960 * time.Millisecond},
		{`{"error":"slow","left":-5,"cost":1,"rate":1}`, time.Second},
		{`{"error":"slow","left":0,"cost":1e99,"rate":1}`, -1},
		{`{"error":"slow","left":0,"cost":9007199254740991,"rate":1}`, month},
		{`{"error":"slow","left":3,"cost":101,"rate":0}`, -1},
		{`{"error":"slow","left":103,"cost":101,"rate":50}`, -1},
		{`{"error":"slow","cost":101,"rate":50}`, -1},
		{`{"left":3,"cost":101,"rate":50}`, -1},
	} {
		resp, _ := bodied(200, c.text)
		if got := d.Parse(resp, received); got.HasRetryAfter != (c.want >= 0) || got.RetryAfter != max(c.want, 0) {
			t.Errorf("%s: RetryAfter = %v, %v, want %v", c.text, got.RetryAfter, got.HasRetryAfter, c.want)
		}
	}
}

// In a dialect with earlier milliseconds, a reset in whole seconds is enough.
func TestRetryAfterInMaybeMilliseconds(t *testing.T) {
	for _, c := range []struct {
		retry, reset string
		once         bool
		want         time.Duration
	}{
		{"6457", "7", true, 6457 * time.Millisecond},
		{"6457", "6", true, 6457 * time.Millisecond},
		{"6457", "7", false, 6457 * time.Second},
		{"1337", "23", true, 1337 * time.Second}, // a resource shared with others
		{"65", "64.57", true, 65 * time.Second},
		{"250", "1", true, 250 * time.Millisecond},
		{"3", "1", true, 3 * time.Second},
		{"3", "0", true, 3 * time.Second},
	} {
		d := &headers.Dialect{MaybeMilliseconds: c.once}
		got := d.Parse(response(429, "Retry-After", c.retry, "X-RateLimit-Reset", c.reset), received)
		if got.RetryAfter != c.want {
			t.Errorf("Retry-After %s, reset %s, %v: RetryAfter = %v, want %v", c.retry, c.reset, c.once, got.RetryAfter, c.want)
		}
	}
}

// A Retry-After that is a thousand times the reset is in milliseconds.
func TestRetryAfterInMillisecondsIsFound(t *testing.T) {
	for _, c := range []struct {
		retry, reset string
		want         time.Duration
	}{
		{"6457", "6.457", 6457 * time.Millisecond},
		{"6457", "6.46", 6457 * time.Millisecond},
		{"64570", "65", 64570 * time.Millisecond},
		{"6457", "6457", 6457 * time.Second},
		{"3600", "60", time.Hour},
		{"60", "0", time.Minute},
		{"1000.5", "1", 1000500 * time.Millisecond},
	} {
		if got := parse(429, "Retry-After", c.retry, "X-RateLimit-Reset-After", c.reset, "X-RateLimit-Reset", c.reset); got.RetryAfter != c.want {
			t.Errorf("Retry-After %s, reset %s: RetryAfter = %v, want %v", c.retry, c.reset, got.RetryAfter, c.want)
		}
	}
}
