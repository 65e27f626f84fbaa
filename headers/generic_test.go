package headers_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/headers"
)

// Common texts in the body of an error, and texts that only look like them.
func TestGenericBody(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		text   string
		want   bool
	}{
		{"code", 403, `{"error":{"code":"rate_limit_exceeded"}}`, true},
		{"code in capitals", 400, `{"errors":[{"extensions":{"code":"RATE_LIMITED"}}]}`, true},
		{"exception", 400, `{"name":"ThrottlingException"}`, true},
		{"element", 503, `<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>`, true},
		{"element further down", 400, `<ErrorResponse><Error><Code>Throttling</Code></Error></ErrorResponse>`, true},
		{"number", 403, `{"error":{"code":429}}`, true},
		{"sentence", 403, `{"message":"You have exceeded the rate limit of 5 calls a second."}`, true},
		{"text", 403, "Rate limit exceeded\n", true},
		{"gRPC's code", 403, `{"error":{"status":"RESOURCE_EXHAUSTED"}}`, true},
		{"gRPC's code of Connect", 400, `{"code":"resource_exhausted","message":"x"}`, true},
		{"exceeded before", 400, `{"errors":[{"extensions":{"code":"EXCEEDED_RATE_LIMIT"}}]}`, true},
		{"calls", 403, `{"error":{"code":"API_CALL_LIMIT_EXCEEDED"}}`, true},
		{"queries", 403, `{"status":"OVER_QUERY_LIMIT"}`, true},
		{"queries a second", 400, `{"errorCode":"QpsLimitExceeded"}`, true},
		{"exception of SOAP", 403, `{"fault":{"exceptionCode":"EXCEEDED_RATE_LIMIT"}}`, true},
		{"too many requests of 400", 400, `{"error":"Too many requests."}`, true},

		{"storage", 403, `{"error":{"code":"storageQuotaExceeded"}}`, false},
		{"size", 400, `{"code":"FILE_SIZE_LIMIT_EXCEEDED"}`, false},
		{"other statuses", 401, `{"error":{"code":"rate_limit_exceeded"}}`, false},
		{"server error", 500, `{"error":{"code":"rate_limit_exceeded"}}`, false},
		{"number elsewhere", 403, `{"message":429}`, false},
		{"permission", 403, `{"code":"forbidden","message":"no right to change the rate limit"}`, false},
		{"what was sent", 400, `{"error":"invalid","input":{"code":"throttled"}}`, false},
		{"what was sent further down", 400, `{"errors":[{"path":{"code":"throttled"}}]}`, false},
		{"limit of another kind", 400, `{"code":"invalid_rate_limit"}`, false},
		{"plug-in", 400, `{"name":"rate-limiting"}`, false},
		{"plug-in of another", 400, `{"name":"throttling"}`, false},
		{"rule", 400, `{"code":"rate_limit_rule"}`, false},
		{"missing limit", 403, `{"code":"RateLimitNotFound"}`, false},
		{"too many in one", 400, `{"message":"Too many requests in one batch"}`, false},
		{"poll less often", 400, `{"error":"slow_down"}`, false},
		{"address", 403, `{"type":"https://example.com/rate-limit"}`, false},
		{"long word", 403, `{"code":"` + strings.Repeat("throttled", 8) + `"}`, false},
		{"long sentence", 403, `{"message":"Rate limit exceeded` + strings.Repeat(".", 256) + `"}`, false},
		{"long text", 403, "Rate limit exceeded" + strings.Repeat(" and so on", 30), false},
		{"long key", 403, `{"` + strings.Repeat("error", 7) + `":{"code":"throttled"}}`, false},
		{"page", 503, `<html><body>Rate limit exceeded</body></html>`, false},
		{"broken", 403, `{"code":"throttled"`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := bodied(c.status, c.text)
			got := headers.Parse(resp, received)
			if got.Throttled != c.want || got.Throttled != (got.Reason == headers.ReasonBody) || got.NotProcessed || got.Permanent {
				t.Errorf("Parse = %+v, want throttled %v", got, c.want)
			}
			checkBody(t, resp, body, c.text)
		})
	}
}

func TestGenericWait(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		text   string
		want   time.Duration
		refuse bool
	}{
		{"seconds", 429, `{"retry_after":17}`, 17 * time.Second, true},
		{"seconds in a word", 429, `{"error":{"retryAfterSeconds":"2.5"}}`, 2500 * time.Millisecond, true},
		{"milliseconds", 429, `{"error":{"retryAfterMs":1500}}`, 1500 * time.Millisecond, true},
		{"in milliseconds", 429, `{"retry_in_ms":1500}`, 1500 * time.Millisecond, true},
		{"in seconds", 403, `{"error":{"retry_in_seconds":4}}`, 4 * time.Second, true},
		{"duration", 429, `{"error":{"retryDelay":"3.700s"}}`, 3700 * time.Millisecond, true},
		{"RetryInfo", 429, `{"code":8,"message":"x","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"5s"}]}`, 5 * time.Second, true},
		{"instant", 429, `{"retry_after":"2026-11-20T12:00:30Z"}`, 30 * time.Second, true},
		{"epoch in milliseconds", 429, `{"retryAfter":1795176030000}`, 30 * time.Second, true},
		{"more of the key", 429, `{"retry_after_count":3}`, 0, true},
		{"the longer", 429, `{"errors":[{"retry_after":3},{"retry_after":5},{"retry_after":4}]}`, 5 * time.Second, true},
		{"of a 503", 503, `{"retry_after":3}`, 3 * time.Second, true},
		{"of a 403", 403, `{"retry_after":3}`, 3 * time.Second, true},
		{"of a refusal in the body", 400, `{"code":"throttled","retry_after":3}`, 3 * time.Second, true},
		{"of a 400", 400, `{"retry_after":3}`, 0, false},
		{"perhaps of another unit", 429, `{"retry_after":30000}`, 0, true},
		{"in words", 429, `{"retry_after":"soon"}`, 0, true},
		{"below zero", 429, `{"retry_after":-3}`, 0, true},
		{"elsewhere", 429, `{"data":{"retry_after":3}}`, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, _ := bodied(c.status, c.text)
			got := headers.Parse(resp, received)
			if got.RetryAfter != c.want || got.HasRetryAfter != (c.want > 0) || got.Throttled != c.refuse {
				t.Errorf("Parse = %+v, want %v, throttled %v", got, c.want, c.refuse)
			}
		})
	}
}

// Gateways in front of many vendors refuse by fields of their own.
func TestGenericFields(t *testing.T) {
	for _, c := range []struct {
		status      int
		name, value string
		want        bool
	}{
		{400, "X-Amzn-ErrorType", "ThrottlingException:http://internal.amazon.com/", true},
		{403, "X-Mashery-Error-Code", "ERR_403_DEVELOPER_OVER_RATE", true},
		{503, "X-Envoy-Overloaded", "true", true},
		{503, "X-Envoy-RateLimited", "true", true},
		{403, "X-Amzn-ErrorType", "AccessDeniedException", false},
		{403, "X-Mashery-Error-Code", "ERR_403_NOT_AUTHORIZED", false},
		{500, "X-Envoy-Overloaded", "true", false},
		{200, "X-Envoy-RateLimited", "true", false},
	} {
		resp := response(c.status, c.name, c.value)
		if got := headers.Parse(resp, received); got.Throttled != c.want || got.NotProcessed {
			t.Errorf("Parse of %d with %s: %s = %+v, want throttled %v", c.status, c.name, c.value, got, c.want)
		}
	}
}

// A vendor's dialect may declare a response no refusal.
func TestDialectOverrulesGenericRules(t *testing.T) {
	d := &headers.Dialect{Body: []headers.Field{{Name: "reason", Fact: headers.FactNoRefusal, Words: map[string]headers.Scope{"plan": 0}}}}
	resp, _ := bodied(403, `{"reason":"plan","code":"throttled"}`)
	if got := d.Parse(resp, received); got.Throttled {
		t.Errorf("Parse = %+v, want it not throttled", got)
	}
}

// Over real sockets a refusal under 200 is usually zipped, or chunked.
func TestRefusalUnderSuccessOfUnknownLength(t *testing.T) {
	const refusal = `{"code":"x","list":[{"error":"slow down"}]}`
	answers := map[string]func(w http.ResponseWriter){
		"/zipped": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			io.WriteString(zip, refusal)
			zip.Close()
		},
		"/chunks": func(w http.ResponseWriter) {
			io.WriteString(w, refusal[:9])
			http.NewResponseController(w).Flush()
			io.WriteString(w, refusal[9:])
		},
		"/long": func(w http.ResponseWriter) {
			io.WriteString(w, refusal[:len(refusal)-1]+`,"text":"`+strings.Repeat("x", 64<<10)+`"}`)
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		answers[req.URL.Path](w)
	}))
	defer server.Close()
	for path, want := range map[string]bool{"/zipped": true, "/chunks": true, "/long": false} {
		t.Run(path, func(t *testing.T) {
			resp, err := server.Client().Get(server.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.ContentLength >= 0 {
				t.Fatalf("length %d, want it not known", resp.ContentLength)
			}
			if got := speaker.Parse(resp, time.Now()); got.Throttled != want {
				t.Errorf("Parse = %+v, want throttled %v", got, want)
			}
			text, err := io.ReadAll(resp.Body)
			if err != nil || !strings.HasPrefix(string(text), refusal[:len(refusal)-1]) || !strings.HasSuffix(string(text), "}") {
				t.Errorf("body of %d bytes, %v, want it as it was sent", len(text), err)
			}
		})
	}
}
