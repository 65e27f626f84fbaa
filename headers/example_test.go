package headers_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/weirgo/weir/headers"
)

func ExampleParse() {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	resp := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{
		"Retry-After":      {"20"},
		"Ratelimit-Policy": {`"minute";q=100;w=60`},
		"Ratelimit":        {`"minute";r=0;t=20`},
	}}
	signal := headers.Parse(resp, now)
	fmt.Println(signal.Throttled, signal.Reason, signal.RetryAfter)
	for _, q := range signal.Quotas {
		fmt.Printf("%s: %v of %v %s in %v, more in %v\n", q.Name, q.Remaining, q.Limit, q.Unit, q.Window, q.Reset)
	}
	// Output:
	// true status_429 20s
	// minute: 0 of 100 requests in 1m0s, more in 20s
}

func ExampleSignal_Wait() {
	// No Retry-After: the reset of the quota that is used up states the time.
	resp := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{
		"Date":                  {"Fri, 20 Nov 2026 12:00:00 GMT"},
		"X-Ratelimit-Limit":     {"60"},
		"X-Ratelimit-Remaining": {"0"},
		"X-Ratelimit-Reset":     {"1795177246"},
	}}
	signal := headers.Parse(resp, time.Date(2026, 11, 20, 12, 0, 1, 0, time.UTC))
	fmt.Println(signal.Wait())
	// Output: 20m46s true
}

func ExampleLookup() {
	openai, _ := headers.Lookup("OpenAI")
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{
		"X-Ratelimit-Limit-Tokens":     {"150000"},
		"X-Ratelimit-Remaining-Tokens": {"149984"},
		"X-Ratelimit-Reset-Tokens":     {"6m0s"},
	}}
	for _, q := range openai.Parse(resp, time.Now()).Quotas {
		fmt.Println(q.Name, q.Remaining, q.Reset, q.ResetKind == headers.ResetFull)
	}
	// Output: tokens 149984 6m0s true
}

// A vendor of your own: its refusals are a 400, its reset counts milliseconds, and the wait is in
// the body.
func ExampleDialect() {
	acme := &headers.Dialect{
		Vendor:  "Acme",
		Refuses: []int{http.StatusBadRequest},
		Fields: []headers.Field{
			{Name: "X-Acme-Calls-Left", Fact: headers.FactRemaining, Quota: "calls"},
			{Name: "X-Acme-Calls-Reset", Fact: headers.FactReset, Quota: "calls", Per: time.Millisecond},
		},
		Body: []headers.Field{
			{Name: "error.retry_after", Fact: headers.FactRetryAfter},
		},
	}
	resp := &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{
		"X-Acme-Calls-Left":  {"0"},
		"X-Acme-Calls-Reset": {"1500"},
	}}
	signal := acme.Parse(resp, time.Now())
	fmt.Println(signal.Throttled)
	fmt.Println(signal.Wait())
	// Output:
	// true
	// 1.5s true
}

func ExampleRegister() {
	err := headers.Register(&headers.Dialect{Vendor: "Acme", Hosts: []string{"*.acme.example"}, Refuses: []int{420}})
	fmt.Println(err)
	_, ok := headers.Lookup("Acme")
	fmt.Println(ok)
	// Output:
	// <nil>
	// true
}

// A caller that must not wait for a slow body acts on the header first.
func ExampleDialect_ParseHeader() {
	openai, _ := headers.Lookup("OpenAI")
	resp := &http.Response{
		StatusCode: http.StatusTooManyRequests,
		Header:     http.Header{"Retry-After": {"20"}},
		Body:       io.NopCloser(strings.NewReader(`{"error":{"code":"insufficient_quota"}}`)),
	}
	now := time.Now()
	signal, more := openai.ParseHeader(resp, now)
	fmt.Println(signal.RetryAfter, signal.Permanent, more)
	signal = openai.Parse(resp, now)
	fmt.Println(signal.RetryAfter, signal.Permanent, signal.Reason)
	// Output:
	// 20s false true
	// 20s true no_retry
}
