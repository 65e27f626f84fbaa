package headers_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/headers"
)

func from(host string, status int, fields ...string) *http.Response {
	resp := response(status, fields...)
	resp.Request.URL = &url.URL{Scheme: "https", Host: host}
	return resp
}

func TestParsePicksDialectByHost(t *testing.T) {
	limit := []string{"X-Shopify-Shop-Api-Call-Limit", "32/40"}
	for _, c := range []struct {
		host string
		want int
	}{
		{"acme.myshopify.com", 1},
		{"acme.myshopify.com:443", 1},
		{"ACME.MyShopify.Com", 1},
		{"acme.myshopify.com.", 1}, {"acme.myshopify.com.:443", 1}, {"acme.myshopify.com:", 1},
		{"a.b.myshopify.com", 1},
		{"myshopify.com", 0},
		{"notmyshopify.com", 0},
		{"myshopify.com.example.com", 0},
		{"example.com", 0}, {"localhost", 0}, {"127.0.0.1:80", 0}, {"[::1]:80", 0}, {"", 0}, {".", 0}, {"..", 0}, {":", 0}, {":80", 0},
	} {
		if got := headers.Parse(from(c.host, 200, limit...), received).Quotas; len(got) != c.want {
			t.Errorf("host %q: %d quotas, want %d", c.host, len(got), c.want)
		}
	}
}

// The longest domain above a host names its dialect, unless the host has its own. The order of
// registrations does not matter.
func TestLongestDomainChoosesDialect(t *testing.T) {
	hosts := []string{"*.order.example", "*.b.order.example", "*.a.b.order.example", "a.b.order.example"}
	for i := range 2 * len(hosts) {
		for j := range hosts { // each host is first and last once, in both directions
			k := (i + j) % len(hosts)
			if i >= len(hosts) {
				k = len(hosts) - 1 - k
			}
			if err := headers.Register(&headers.Dialect{Vendor: hosts[k], Hosts: []string{hosts[k]}}); err != nil {
				t.Fatal(err)
			}
		}
		for host, want := range map[string]string{
			"x.order.example":       "*.order.example",
			"b.order.example":       "*.order.example",
			"x.b.order.example":     "*.b.order.example",
			"x.y.b.order.example":   "*.b.order.example",
			"x.a.b.order.example":   "*.a.b.order.example",
			"a.b.order.example":     "a.b.order.example",
			"x.y.a.b.order.example": "*.a.b.order.example",
		} {
			if got := headers.DialectOf(from(host, 200).Request); got == nil || got.Vendor != want {
				t.Errorf("%s is read as %+v, want %s", host, got, want)
			}
		}
	}
}

// A dialect that replaces another also takes over its other names.
func TestRegisterTakesOtherNames(t *testing.T) {
	old, _ := headers.Lookup("Amazon Web Services")
	defer headers.Register(old)
	if err := headers.Register(&headers.Dialect{Vendor: "aws", Source: "mine"}); err != nil {
		t.Fatal(err)
	}
	if got, ok := headers.Lookup("amazon web services"); !ok || got.Source != "mine" {
		t.Errorf("Lookup = %+v, %v, want the registered dialect", got, ok)
	}
}

func TestLookup(t *testing.T) {
	for _, vendor := range []string{"GitHub", "github", "Azure OpenAI", "X (Twitter)"} {
		if d, ok := headers.Lookup(vendor); !ok || !strings.EqualFold(d.Vendor, vendor) {
			t.Errorf("Lookup(%q) = %v, %v, want it", vendor, d, ok)
		}
	}
	if d, ok := headers.Lookup("nobody"); ok || d != nil {
		t.Errorf("Lookup(nobody) = %v, %v, want none", d, ok)
	}
}

func TestRegister(t *testing.T) {
	mine := &headers.Dialect{
		Vendor: "Acme",
		Hosts:  []string{"api.acme.example", "*.acme.example"},
		Fields: []headers.Field{{Name: "x-acme-left", Fact: headers.FactRemaining, Quota: "acme", Unit: "coins"}},
	}
	if err := headers.Register(mine); err != nil {
		t.Fatal(err)
	}
	mine.Fields[0].Quota = "changed later"
	want := headers.Quota{Name: "acme", Unit: "coins", Remaining: 3, HasRemaining: true}
	for _, host := range []string{"api.acme.example", "eu.acme.example"} {
		if got := headers.Parse(from(host, 200, "X-Acme-Left", "3"), received).Quotas; len(got) != 1 || got[0] != want {
			t.Errorf("%s: Quotas = %+v, want %+v", host, got, want)
		}
	}
	if d, ok := headers.Lookup("acme"); !ok || d == mine {
		t.Errorf("Lookup(acme) = %p, %v, want a copy of %p", d, ok, mine)
	}
	if err := headers.Register(&headers.Dialect{Vendor: "Acme", Hosts: []string{"api.acme.example"}, Refuses: []int{420}}); err != nil {
		t.Fatal(err)
	}
	if got := headers.Parse(from("api.acme.example", 420), received); !got.Throttled || got.Reason != "status" {
		t.Errorf("Parse = %+v, want a refusal in the later dialect", got)
	}
}

func TestRegisterRefuses(t *testing.T) {
	field := func(f headers.Field) *headers.Dialect {
		return &headers.Dialect{Vendor: "Acme", Fields: []headers.Field{f}}
	}
	for _, d := range []*headers.Dialect{
		nil,
		{},
		{Vendor: "Acme", Hosts: []string{""}},
		{Vendor: "Acme", Hosts: []string{"*"}},
		{Vendor: "Acme", Hosts: []string{"*.com"}},
		{Vendor: "Acme", Hosts: []string{"api.*.example"}},
		{Vendor: "Acme", Hosts: []string{"api.acme.example."}},
		{Vendor: "Acme", Hosts: []string{".acme.example"}},
		{Vendor: "Acme", Hosts: []string{"api.acme.example:443"}},
		{Vendor: "Acme", Hosts: []string{"https://api.acme.example/"}},
		field(headers.Field{}),
		field(headers.Field{Name: "X", Fact: 99}),
		field(headers.Field{Name: "X", Syntax: 99}),
		field(headers.Field{Name: "X", Member: -1}),
		field(headers.Field{Name: "X", Per: -1}),
		field(headers.Field{Name: "X", Window: -1}),
		{Vendor: "Acme", Body: []headers.Field{{Name: "a", Syntax: headers.SyntaxPairs}}},
	} {
		if err := headers.Register(d); err == nil || !strings.HasPrefix(err.Error(), "headers: ") {
			t.Errorf("Register(%+v) = %v, want an error", d, err)
		}
	}
}

func TestRegisterWhileParsing(t *testing.T) {
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for j := range 20 {
				host := fmt.Sprintf("h%d-%d.acme.example", i, j)
				if err := headers.Register(&headers.Dialect{Vendor: host, Hosts: []string{host}, Refuses: []int{420}}); err != nil {
					t.Error(err)
				}
				if !headers.Parse(from(host, 420), received).Throttled {
					t.Errorf("%s: its dialect is not in use after Register", host)
				}
			}
		})
	}
	group.Wait()
}

// Parse in an unregistered dialect, with names in any case.
func TestDialectOfOnesOwn(t *testing.T) {
	d := &headers.Dialect{
		Refuses: []int{400}, NotProcessed: []int{400}, Scope: headers.ScopeLane, Reset: headers.ResetFull, Advisory: true,
		Fields: []headers.Field{
			{Name: "x-ratelimit-reset", Fact: headers.FactReset, Per: time.Minute},
			{Name: "X-RateLimit-Limit"}, // must not be read
			{Name: "x-why", Fact: headers.FactScope, Words: map[string]headers.Scope{"*user*": headers.ScopeCredential}},
			{Name: "x-closed", Fact: headers.FactPermanent, Words: map[string]headers.Scope{"yes": 0}},
			{Name: "x-wait", Fact: headers.FactRetryAfter, Per: time.Hour},
		},
	}
	got := d.Parse(response(400, "X-RateLimit-Reset", "2", "X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "0", "X-Why", "a user's"), received)
	want := headers.Quota{
		Unit: "requests", HasRemaining: true, Reset: 2 * time.Minute, HasReset: true, ResetKind: headers.ResetFull, Advisory: true,
	}
	if len(got.Quotas) != 1 || got.Quotas[0] != want {
		t.Errorf("Quotas = %+v, want %+v", got.Quotas, want)
	}
	got.Quotas = nil
	if want := (headers.Signal{Throttled: true, NotProcessed: true, Reason: "status", Scope: headers.ScopeCredential}); !equal(got, want) {
		t.Errorf("Parse = %+v, want %+v", got, want)
	}
	if got := d.Parse(response(400, "X-Closed", "yes", "X-Wait", "2"), received); !got.Permanent || got.Scope != headers.ScopeLane || got.RetryAfter != 2*time.Hour {
		t.Errorf("Parse = %+v, want permanent, of the lane, 2h", got)
	}
	if got := d.Parse(response(403, "X-RateLimit-Remaining", "0"), received); got.Throttled {
		t.Errorf("Parse = %+v, want no refusal by an advisory quota", got)
	}
}

// Each syntax with values that do not fit it: those are left out, and the rest is read.
func TestSyntaxes(t *testing.T) {
	const one = "x"
	count := func(name string, limit, remaining float64) headers.Quota {
		return headers.Quota{Name: name, Unit: "coins", Limit: limit, HasLimit: limit > 0, Remaining: remaining, HasRemaining: true}
	}
	inWindow := func(q headers.Quota, window time.Duration) headers.Quota {
		q.Window, q.HasWindow = window, true
		return q
	}
	until := func(q headers.Quota, reset time.Duration) headers.Quota {
		q.Reset, q.HasReset = reset, true
		return q
	}
	for _, c := range []struct {
		name  string
		field headers.Field
		value string
		want  []headers.Quota
	}{
		{"the most that was used", headers.Field{Fact: headers.FactUsed, Window: time.Second}, "3, 5, junk, 4",
			[]headers.Quota{inWindow(headers.Quota{Name: one, Unit: "coins"}, time.Second)}},
		{"of a limit", headers.Field{Syntax: headers.SyntaxUsedOfLimit}, "45/40", []headers.Quota{count(one, 40, 0)}},
		{"of limits", headers.Field{Syntax: headers.SyntaxUsedOfLimit}, "a=1/4; b=2/5(name=b); c=/; d=1; e=-1/3; f=1/9e9",
			[]headers.Quota{count("a", 4, 3), count("b", 5, 3)}},
		{"named", headers.Field{Syntax: headers.SyntaxNamed, Fact: headers.FactRemaining}, "a;7, b;x, c, ;3, d;-2",
			[]headers.Quota{count("", 0, 3), count("a", 0, 7), count("d", 0, 0)}},
		{"pairs", headers.Field{Syntax: headers.SyntaxPairs}, "total=9; remaining=-3; resets=41; other=7; total",
			[]headers.Quota{until(count(one, 9, 0), 41*time.Second)}},
		{"windows", headers.Field{Syntax: headers.SyntaxWindows, Fact: headers.FactLimit}, "20:1,100:120,7:0,:,8",
			[]headers.Quota{
				{Name: one, Unit: "coins", Limit: 20, HasLimit: true, Window: time.Second, HasWindow: true},
				{Name: one, Unit: "coins", Limit: 100, HasLimit: true, Window: 2 * time.Minute, HasWindow: true},
			}},
		{"what remains of windows", headers.Field{Syntax: headers.SyntaxWindows, Fact: headers.FactRemaining}, "20:1,0:120",
			[]headers.Quota{inWindow(count(one, 0, 20), time.Second), inWindow(count(one, 0, 0), 2*time.Minute)}},
		{"exhausted", headers.Field{Syntax: headers.SyntaxExhausted}, "60:a;b:key, 5::org, x:c, -1:d",
			[]headers.Quota{until(count("", 0, 0), 5*time.Second), until(count("a", 0, 0), time.Minute), until(count("b", 0, 0), time.Minute)}},
		{"percent", headers.Field{Syntax: headers.SyntaxPercent}, `{"call_count":120,"total_time":-1,"total_cputime":1e3}`,
			[]headers.Quota{count("x-call_count", 100, 0), count("x-total_cputime", 100, 0)}},
		{"percent of too much", headers.Field{Syntax: headers.SyntaxPercent}, `{"call_count":1e999}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.field.Name, c.field.Quota, c.field.Unit = "X-Acme", one, "coins"
			d := &headers.Dialect{Fields: []headers.Field{c.field}}
			if got := d.Parse(response(200, "X-Acme", c.value), received).Quotas; !slices.Equal(got, c.want) {
				t.Errorf("%q:\n got %+v,\nwant %+v", c.value, got, c.want)
			}
		})
	}
}

// The greatest of several used counts is the cautious one.
func TestMostUsedCounts(t *testing.T) {
	d := &headers.Dialect{Fields: []headers.Field{
		{Name: "X-Limit", Fact: headers.FactLimit},
		{Name: "X-Used", Fact: headers.FactUsed},
	}}
	got := d.Parse(response(200, "X-Limit", "10", "X-Used", "3, 7", "X-Used", "5"), received).Quotas
	if want := (headers.Quota{Unit: "requests", Limit: 10, HasLimit: true, Remaining: 3, HasRemaining: true}); len(got) != 1 || got[0] != want {
		t.Errorf("Quotas = %+v, want %+v", got, want)
	}
}

// A limit is reported with its used part, in any order.
func TestUsedOfWindows(t *testing.T) {
	d := &headers.Dialect{Fields: []headers.Field{
		{Name: "X-Used", Syntax: headers.SyntaxWindows, Fact: headers.FactUsed},
		{Name: "X-Limit", Syntax: headers.SyntaxWindows, Fact: headers.FactLimit},
	}}
	got := d.Parse(response(200, "X-Limit", "20:1,100:120", "X-Used", "101:120,3:1,9:9"), received).Quotas
	if len(got) != 2 || got[0].Remaining != 17 || got[1].Remaining != 0 || !got[1].HasRemaining {
		t.Errorf("Quotas = %+v, want 17 and 0 remaining", got)
	}
}

// Refusals of vendors besides 429, and whether they leave the request undone.
func TestVendorsRefusals(t *testing.T) {
	for _, c := range []struct {
		vendor       string
		status       int
		text         string
		notProcessed bool
	}{
		{"AWS", 400, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}`, true},
		{"AWS", 400, `{"__type":"ThrottledException"}`, true},
		{"AWS", 400, `{"code":"Throttling.User"}`, true},
		{"AWS", 400, `{"code":"RequestThrottled"}`, true},
		{"AWS", 503, `{"code":"SlowDown"}`, true},
		{"GitHub", 403, `{"documentation_url":"https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`, true},
		{"GitHub", 403, `{"documentation_url":"https://docs.github.com/en/free-pro-team@latest/rest/overview/resources-in-the-rest-api#secondary-rate-limits"}`, true},
		{"Google APIs", 403, `{"error":{"errors":[{"reason":"userRateLimitExceeded"}]}}`, true},
		{"Linear", 400, `{"errors":[{"extensions":{"code":"RATELIMITED"}}]}`, true},
	} {
		d, _ := headers.Lookup(c.vendor)
		resp, _ := bodied(c.status, c.text)
		want := headers.Signal{Throttled: true, NotProcessed: c.notProcessed, Reason: "body"}
		got := d.Parse(resp, received)
		got.Scope = headers.ScopeUnknown
		if !equal(got, want) {
			t.Errorf("%s %d %s: Parse = %+v, want %+v", c.vendor, c.status, c.text, got, want)
		}
		resp, _ = bodied(c.status, `{"__type":"ValidationException","message":"Resource not accessible"}`)
		if got := d.Parse(resp, received); got.Throttled {
			t.Errorf("%s %d of another error: Parse = %+v, want it not throttled", c.vendor, c.status, got)
		}
	}
}

// A daily quota of Google's is renewed at midnight, and no call waits that long.
func TestDaysQuotaOfGoogle(t *testing.T) {
	d, _ := headers.Lookup("Google APIs")
	for text, daily := range map[string]bool{
		`{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}`:               true,
		`{"error":{"errors":[{"reason":"dailyLimitExceededUnreg"}]}}`:          true,
		`{"error":{"errors":[{"reason":"variableTermExpiredDailyExceeded"}]}}`: true,
		`{"error":{"errors":[{"reason":"rateLimitExceeded"}]}}`:                false,
		`{"error":{"errors":[{"reason":"quotaExceeded"}]}}`:                    false,
		`{"error":{"details":[{"reason":"RATE_LIMIT_EXCEEDED"}]}}`:             false,
	} {
		resp, _ := bodied(403, text)
		if got := d.Parse(resp, received); !got.Throttled || got.Permanent != daily {
			t.Errorf("%s: Parse = %+v, want a refusal that is permanent: %v", text, got, daily)
		}
	}
}

// X's daily quota is spent while its quarter-hour quotas are not.
func TestDaysQuotaOfX(t *testing.T) {
	d, _ := headers.Lookup("X (Twitter)")
	at := strconv.FormatInt(received.Add(6*time.Hour).Unix(), 10)
	got := d.Parse(response(429, "x-rate-limit-remaining", "39999", "x-app-limit-24hour-limit", "17",
		"x-app-limit-24hour-remaining", "0", "x-app-limit-24hour-reset", at), received)
	if wait, asks := got.Wait(); wait != 6*time.Hour || !asks {
		t.Errorf("Wait = %v, %v, want 6h", wait, asks)
	}
}

// The vendors' words for the scope of a refusal.
func TestVendorsScopes(t *testing.T) {
	for _, c := range []struct {
		vendor string
		status int
		fields []string
		want   headers.Scope
	}{
		{"Slack", 429, nil, headers.ScopeRoute},
		{"Discord", 429, []string{"X-RateLimit-Scope", "user"}, headers.ScopeRoute},
		{"Discord", 429, []string{"X-RateLimit-Scope", "shared"}, headers.ScopeRoute},
		{"Discord", 429, []string{"X-RateLimit-Scope", "global"}, headers.ScopeGlobal},
		{"Stripe", 429, []string{"Stripe-Rate-Limited-Reason", "endpoint-rate"}, headers.ScopeRoute},
		{"Stripe", 429, []string{"Stripe-Rate-Limited-Reason", "resource-specific"}, headers.ScopeRequest},
		{"Stripe", 500, []string{"Stripe-Rate-Limited-Reason", "endpoint-rate"}, headers.ScopeUnknown},
		{"Riot Games", 429, []string{"X-Rate-Limit-Type", "application"}, headers.ScopeCredential},
		{"Binance", 418, nil, headers.ScopeGlobal},
		{"Xero", 429, []string{"X-Rate-Limit-Problem", "appminute"}, headers.ScopeLane},
	} {
		d, _ := headers.Lookup(c.vendor)
		if got := d.Parse(response(c.status, c.fields...), received); got.Scope != c.want {
			t.Errorf("%s %d %q: Scope = %v, want %v", c.vendor, c.status, c.fields, got.Scope, c.want)
		}
	}
}
