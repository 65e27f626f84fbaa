package headers_test

import (
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/headers"
)

const month = 31 * 24 * time.Hour

func parse(status int, fields ...string) headers.Signal {
	return headers.Parse(response(status, fields...), received)
}

func TestRetryAfter(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		value string
		want  time.Duration
	}{
		{"0", 0},
		{"120", 2 * time.Minute},
		{"007", 7 * time.Second},
		{"2.128", 2128 * time.Millisecond},
		{"0.0000000001", 1}, // never earlier than asked
		{"1.9999999999", 2 * time.Second},
		{"2678400", month},
		{"2678401", month},
		{"9223372037", month}, // as seconds it overflows a Duration
		{"18446744074", month},
		{"99999999999999999999", month},
		{"18446744073709551615", month}, // 2^64 - 1
		{"18446744073709551616", month},
		{"18446744073709551617", month}, // not one second
		{"18446744073709551626", month}, // nor ten
		{"184467440737095516170", month},
		{strings.Repeat("9", 16<<10), month},
		{strings.Repeat("9", 16<<10+1), none},
		{"1.", none}, {".5", none}, {"1.5.1", none}, {"-1", none}, {"+5", none}, {"-0", none},
		{"1e3", none}, {"0x10", none}, {"1_000", none}, {"NaN", none}, {"Inf", none},
		{"5s", none}, {"5 s", none}, {"120 seconds", none}, {"", none}, {" ", none}, {"5\u00a0", none}, {"١٢", none},
		{"Fri, 20 Nov 2026 12:00:30 GMT", 30 * time.Second},
		{"Friday, 20-Nov-26 12:00:30 GMT", 30 * time.Second},
		{"Fri Nov 20 12:00:30 2026", 30 * time.Second},
		{"Fri, 20 Nov 2026 11:59:30 GMT", 0},
		{"Fri, 31 Dec 9999 23:59:59 GMT", month},
		{"Sat, 12 Apr 2262 00:00:00 GMT", month}, // Unix nanoseconds end the day before
		{"Fri, 20 Nov 2318 12:00:00 GMT", month}, // a Duration ends before it
		{"9999-12-31T23:59:59Z", month},
		{"9224318016", month},          // seconds
		{"9224318016000", month},       // milliseconds
		{"9224318016000000", month},    // microseconds
		{"9224318016000000000", month}, // nanoseconds
		{"Fri, 20 Nov 2026 12:00:30 PST", none},
		{"Friday, 20-Nov-26 12:00:30 PST", none},
		{"Fri, 20 Nov 2026 12:00:30 UTC", none},
		{"Fri, 20 Nov 2026 12:00:30 +0000", none},
		{"Sat, 31 Feb 2026 00:00:00 GMT", none},
		{"Saturday, 01-Jan-72 00:00:00 GMT", month}, // 2072 is not fifty years ahead
		{"Saturday, 01-Jan-77 00:00:00 GMT", 0},     // 2077 is: 1977
		{"2026-11-20T12:00:30Z", 30 * time.Second},
		{"2026-11-20T12:00:30.5Z", 30500 * time.Millisecond},
		{"2026-11-20t12:00:30z", 30 * time.Second},
		{"2026-11-20T14:00:30+02:00", 30 * time.Second},
		{"2026-11-20T12:01Z", time.Minute},
		{"Fri, 20 Nov 2026 23:59:60 GMT", 12 * time.Hour}, // a leap second is the second after 59
		{"Friday, 20-Nov-26 23:59:60 GMT", 12 * time.Hour},
		{"Fri Nov 20 23:59:60 2026", 12 * time.Hour},
		{"2026-11-20T23:59:60Z", 12 * time.Hour},
		{"2026-11-20t23:59:60.5z", 12*time.Hour + 500*time.Millisecond},
		{"2026-11-21T01:59:60+02:00", 12 * time.Hour},
		{"2026-11-20T12:60Z", none},
		{"2026-11-20T12:60:00Z", none},
		{"Fri, 20 Nov 2026 23:59:61 GMT", none},
		{"Fri, 20 Nov 2026 23:60:60 GMT", none},
		{"2026-11-20", none},
		{"1795176060", time.Minute}, // an epoch
		{"1795176060000", time.Minute},
		{"5, 60", time.Minute},
		{"5, junk, 7", 7 * time.Second},
		{"5, Fri, 20 Nov 2026 12:00:30 GMT", 30 * time.Second},
		{"Fri, 20 Nov 2026 12:00:30 GMT, 5", 30 * time.Second},
	} {
		name := c.value[:min(len(c.value), 40)]
		t.Run(name, func(t *testing.T) {
			got := parse(429, "Retry-After", c.value)
			if c.want == none {
				if got.HasRetryAfter || got.RetryAfter != 0 {
					t.Errorf("RetryAfter of %q = %v, want none", name, got.RetryAfter)
				}
			} else if !got.HasRetryAfter || got.RetryAfter != c.want {
				t.Errorf("RetryAfter of %q = %v, %v, want %v", name, got.RetryAfter, got.HasRetryAfter, c.want)
			}
		})
	}
}

func TestRetryAfterFields(t *testing.T) {
	for _, c := range []struct {
		name   string
		fields []string
		want   time.Duration
	}{
		{"milliseconds win", []string{"Retry-After", "2", "Retry-After-Ms", "1250"}, 1250 * time.Millisecond},
		{"the next where the first is invalid", []string{"Retry-After", "2", "Retry-After-Ms", "soon"}, 2 * time.Second},
		{"of Microsoft before those of Amazon", []string{"X-Amz-Retry-After", "3", "X-Ms-Retry-After-Ms", "4"}, 4 * time.Millisecond},
		{"a fraction of a millisecond", []string{"Retry-After-Ms", "0.5"}, 500 * time.Microsecond},
		{"milliseconds are no instant", []string{"Retry-After-Ms", "946684800"}, 946684800 * time.Millisecond},
		{"the longest of several lines", []string{"Retry-After", "5", "Retry-After", "60", "Retry-After", "7"}, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parse(429, c.fields...); got.RetryAfter != c.want || !got.HasRetryAfter {
				t.Errorf("RetryAfter = %v, %v, want %v", got.RetryAfter, got.HasRetryAfter, c.want)
			}
		})
	}
}

func TestReset(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		value string
		want  time.Duration
	}{
		{"0", 0}, {"30", 30 * time.Second}, {"0.5", 500 * time.Millisecond},
		{"946684799", month}, {"946684800", 0},
		{"1795176005", 5 * time.Second}, {"1795176005500", 5500 * time.Millisecond},
		{"1795176005.25", 5250 * time.Millisecond},
		{"1795176005500000", 5500 * time.Millisecond}, {"1795176005500000.5", 5500*time.Millisecond + 500}, {"1795176005500000000", 5500 * time.Millisecond},
		{"6m0s", 6 * time.Minute}, {"547ms", 547 * time.Millisecond}, {"2m52.8s", 172800 * time.Millisecond},
		{"1d12h", 36 * time.Hour}, {"12us", 12 * time.Microsecond}, {"12µs", 12 * time.Microsecond}, {"3ns", 3},
		{"0s", 0}, {"99999999999999999999d", month}, {"-1s", none}, {"1", time.Second}, {"1w", none}, {"s", none},
		{"00:00:03", 3 * time.Second}, {"01:02:03.5", 3723500 * time.Millisecond}, {"00:61:00", none}, {"1:2", none}, {":::", none},
		{"99999999999999999999:00:00", month},
		{"2026-11-20T12:01Z", time.Minute}, {"2026-11-20T12:00:30+00:00", 30 * time.Second},
		{"Fri, 20 Nov 2026 12:00:30 GMT", 30 * time.Second},
		{"Fri Nov 20 2026 13:00:30 GMT+0100 (Central European Standard Time)", 30 * time.Second},
		{"9;acme-jitter=3", 9 * time.Second}, {"20, 30", 30 * time.Second}, {"-30", none}, {"never", none}, {"", none},
	} {
		t.Run(c.value, func(t *testing.T) {
			got := parse(200, "X-RateLimit-Remaining", "1", "X-RateLimit-Reset", c.value)
			q := headers.Quota{Unit: "requests", Remaining: 1, HasRemaining: true}
			if c.want != none {
				q.Reset, q.HasReset = c.want, true
			}
			if len(got.Quotas) != 1 || got.Quotas[0] != q {
				t.Errorf("Quotas = %+v, want %+v", got.Quotas, q)
			}
		})
	}
}

// The vendor's clock is used if its Date can be trusted.
func TestReferenceClock(t *testing.T) {
	const instant = "Fri, 20 Nov 2026 12:10:00 GMT"
	for _, c := range []struct {
		name   string
		fields []string
		want   time.Duration
	}{
		{"no Date", nil, 10 * time.Minute},
		{"Date ahead", []string{"Date", "Fri, 20 Nov 2026 12:09:00 GMT"}, time.Minute},
		{"Date behind", []string{"Date", "Fri, 20 Nov 2026 11:00:00 GMT"}, 70 * time.Minute},
		{"Date in the RFC 850 form", []string{"Date", "Friday, 20-Nov-26 12:09:00 GMT"}, time.Minute},
		{"a day off", []string{"Date", "Thu, 19 Nov 2026 12:00:00 GMT"}, 24*time.Hour + 10*time.Minute},
		{"more than a day off", []string{"Date", "Thu, 19 Nov 2026 11:59:59 GMT"}, 10 * time.Minute},
		{"two Dates", []string{"Date", "Fri, 20 Nov 2026 12:09:00 GMT", "Date", "Fri, 20 Nov 2026 12:09:00 GMT"}, 10 * time.Minute},
		{"an invalid Date", []string{"Date", "2026-11-20T12:09:00Z"}, 10 * time.Minute},
		{"from a cache", []string{"Date", "Fri, 20 Nov 2026 12:09:00 GMT", "Age", "1"}, 10 * time.Minute},
		{"from a cache, beside another instant", []string{"Date", "Fri, 20 Nov 2026 12:09:00 GMT", "Age", "1", "X-RateLimit-Reset", "1795177800"}, 10 * time.Minute},
		{"Age of zero", []string{"Date", "Fri, 20 Nov 2026 12:09:00 GMT", "Age", "0"}, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 20 { // fields come in any order
				if got := parse(429, append(c.fields, "Retry-After", instant)...); got.RetryAfter != c.want {
					t.Fatalf("RetryAfter = %v, want %v", got.RetryAfter, c.want)
				}
			}
		})
	}
}

func TestJudgement(t *testing.T) {
	var refused = headers.Signal{Throttled: true, NotProcessed: true, Reason: "status_429"}
	for _, c := range []struct {
		name   string
		status int
		fields []string
		want   headers.Signal // without its quotas
	}{
		{"a success", 200, nil, headers.Signal{}},
		{"none remaining on a success", 200, []string{"X-RateLimit-Remaining", "0"}, headers.Signal{}},
		{"429", 429, nil, refused},
		{"503", 503, nil, headers.Signal{}},
		{"503 with Retry-After", 503, []string{"Retry-After", "0"}, headers.Signal{Throttled: true, Reason: "status_503", HasRetryAfter: true}},
		{"503 with an invalid one", 503, []string{"Retry-After", "soon"}, headers.Signal{}},
		{"503 with none remaining", 503, []string{"X-RateLimit-Remaining", "0"}, headers.Signal{}},
		{"403", 403, nil, headers.Signal{}},
		{"403 with a wait of zero, as Jira reports it with each answer", 403, []string{"Retry-After", "0"}, headers.Signal{HasRetryAfter: true}},
		{"403 with some remaining", 403, []string{"X-RateLimit-Remaining", "7"}, headers.Signal{}},
		{"403 with none remaining", 403, []string{"X-RateLimit-Remaining", "0"}, headers.Signal{}},
		{"403 with none remaining for long", 403, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "3"}, headers.Signal{Throttled: true, Reason: "status_403"}},
		{"403 with none remaining for a moment", 403, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "2"}, headers.Signal{}},
		{"403 with some remaining for long", 403, []string{"X-RateLimit-Remaining", "1", "X-RateLimit-Reset", "3"}, headers.Signal{}},
		{"403 with none remaining, from a cache", 403, []string{"X-RateLimit-Remaining", "0", "Age", "9"}, headers.Signal{}},
		{"413 with Retry-After", 413, []string{"Retry-After", "1"}, headers.Signal{RetryAfter: time.Second, HasRetryAfter: true}},
		{"500 not to be retried", 500, []string{"Stripe-Should-Retry", "false"}, headers.Signal{Permanent: true, Reason: "no_retry"}},
		{"500 to be retried", 500, []string{"Stripe-Should-Retry", "true"}, headers.Signal{}},
		{"429 not to be retried", 429, []string{"X-Should-Retry", " False "}, headers.Signal{Throttled: true, NotProcessed: true, Permanent: true, Reason: "no_retry"}},
		{"a success not to be retried", 200, []string{"X-Should-Retry", "false"}, headers.Signal{}},
		{"429 of a quota of zero", 429, []string{"X-RateLimit-Limit", "0"}, headers.Signal{Throttled: true, NotProcessed: true, Permanent: true, Reason: "zero_quota"}},
		{"429 of a limit of zero that cannot be meant", 429, []string{"X-RateLimit-Limit", "0", "X-RateLimit-Remaining", "5"}, refused},
		{"429 pushed back for a while", 429, []string{"X-RateLimit-Limit", "0", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "5"}, refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := parse(c.status, c.fields...)
			got.Quotas = nil
			if !equal(got, c.want) {
				t.Errorf("Parse = %+v, want %+v", got, c.want)
			}
		})
	}
}

// equal compares two signals without quotas.
func equal(a, b headers.Signal) bool {
	return a.Throttled == b.Throttled && a.NotProcessed == b.NotProcessed && a.Permanent == b.Permanent &&
		a.Scope == b.Scope && a.Reason == b.Reason && a.RetryAfter == b.RetryAfter && a.HasRetryAfter == b.HasRetryAfter &&
		len(a.Quotas)+len(b.Quotas) == 0
}

func TestQuotaNames(t *testing.T) {
	for _, c := range []struct {
		field string
		name  string
		unit  string
		w     time.Duration
	}{
		{"RateLimit-Remaining", "", "requests", 0},
		{"X-Rate-Limit-Remaining", "", "requests", 0},
		{"Acme-RateLimit-Remaining", "", "requests", 0},
		{"X-RateLimit-Remaining-Requests", "requests", "requests", 0},
		{"anthropic-ratelimit-input-tokens-remaining", "input-tokens", "tokens", 0},
		{"X-RateLimit-Remaining-Minute", "minute", "requests", time.Minute},
		{"X-RateLimit-Remaining-Tokens-Day", "tokens-day", "tokens", 24 * time.Hour},
		{"X-RateLimit-Limit-Remaining", "", "requests", 0},
		{"X-RateLimit-Remaining-" + strings.Repeat("a", 100), strings.Repeat("a", 64), "requests", 0},
	} {
		t.Run(c.field[:min(len(c.field), 50)], func(t *testing.T) {
			want := headers.Quota{Name: c.name, Unit: c.unit, Remaining: 7, HasRemaining: true, Window: c.w, HasWindow: c.w > 0}
			if got := parse(200, c.field, "7").Quotas; len(got) != 1 || got[0] != want {
				t.Errorf("Quotas = %+v, want %+v", got, want)
			}
		})
	}
	for _, field := range []string{
		"X-RateLimits-Remaining", "X-PreRateLimit-Remaining", "X-RateLimit-NearLimit", "X-RateLimit-Used", "X-Limit-Remaining", "Ratelimit_Remaining",
	} {
		if got := parse(200, field, "7").Quotas; got != nil {
			t.Errorf("%s: Quotas = %+v, want none", field, got)
		}
	}
}

// A header map that was built by hand may hold names in any case.
func TestFieldNamesInAnyCase(t *testing.T) {
	resp := response(429)
	resp.Header = http.Header{
		"retry-after": {"5"}, "x-ratelimit-remaining": {"0"}, "RATELIMIT": {`"a";r=1`}, "ratelimit-policy": {`"a";q=2;w=3`},
	}
	got := headers.Parse(resp, received)
	if got.RetryAfter != 5*time.Second || len(got.Quotas) != 2 || got.Quotas[1].Window != 3*time.Second {
		t.Errorf("Parse = %+v, want all four fields read", got)
	}
}

func TestDialectsFieldNamesInAnyCase(t *testing.T) {
	discord, _ := headers.Lookup("Discord")
	resp := response(429)
	resp.Header = http.Header{"x-ratelimit-remaining": {"0"}, "x-ratelimit-reset-after": {"1.5"}}
	if wait, asks := discord.Parse(resp, received).Wait(); wait != 1500*time.Millisecond || !asks {
		t.Errorf("Wait = %v, %v, want 1.5s", wait, asks)
	}
}

func TestResetKind(t *testing.T) {
	for _, c := range []struct {
		field, value string
		want         headers.ResetKind
	}{
		{"X-RateLimit-Reset", "5", headers.ResetUnknown},
		{"RateLimit", "limit=1, reset=5", headers.ResetWindow},
		{"RateLimit", `"a";r=1;t=5`, headers.ResetWindow},
	} {
		if got := parse(200, c.field, c.value).Quotas; len(got) != 1 || got[0].ResetKind != c.want || got[0].Reset != 5*time.Second {
			t.Errorf("%s: %s: Quotas = %+v, want ResetKind %v", c.field, c.value, got, c.want)
		}
	}
}

func TestWindowBeyondTenYearsIsLeftOut(t *testing.T) {
	const longest = 10 * 366 * 24 * time.Hour // 316,224,000 s
	mine := &headers.Dialect{Fields: []headers.Field{
		{Name: "X-Seconds", Fact: headers.FactWindow},
		{Name: "X-Milliseconds", Fact: headers.FactWindow, Per: time.Millisecond},
		{Name: "X-Windows", Syntax: headers.SyntaxWindows, Fact: headers.FactLimit},
	}}
	for _, c := range []struct {
		field, value string
		has          bool
	}{
		{"RateLimit-Limit", "5, 5;w=316224000", true}, {"RateLimit-Limit", "5, 5;w=316224001", false},
		{"RateLimit-Limit", "5, 5;w=316224000.000000001", false}, {"RateLimit-Limit", "5, 5;w=18446744073709551617", false},
		{"RateLimit-Policy", "5;w=316224000", true}, {"RateLimit-Policy", "5;w=316224001", false},
		{"RateLimit-Policy", `"";q=5;w=316224000`, true}, {"RateLimit-Policy", `"";q=5;w=316224001`, false},
		{"X-Seconds", "316224000", true}, {"X-Seconds", "316224001", false}, {"X-Seconds", "18446744073709551617", false},
		{"X-Seconds", "3660d", true}, {"X-Seconds", "3661d", false}, {"X-Seconds", "87840:00:00", true}, {"X-Seconds", "87840:00:01", false},
		{"X-Milliseconds", "316224000000", true}, {"X-Milliseconds", "316224000001", false},
		{"X-Windows", "5:316224000", true}, {"X-Windows", "5:316224001", false},
	} {
		got := mine.Parse(response(200, c.field, c.value), received).Quotas
		has := len(got) == 1 && got[0].HasWindow
		if has != c.has || has && got[0].Window != longest {
			t.Errorf("%s: %s: Quotas = %+v, want a window: %v", c.field, c.value, got, c.has)
		}
	}
}

func TestWait(t *testing.T) {
	spent := headers.Quota{HasRemaining: true, HasReset: true, Reset: time.Minute}
	later, advisory, left, silent := spent, spent, spent, spent
	later.Reset = time.Hour
	advisory.Advisory, advisory.Reset = true, 2*time.Hour
	left.Remaining, left.Reset = 1, 3*time.Hour
	silent.HasReset, silent.Reset = false, 0
	unsaid := later
	unsaid.HasRemaining = false
	for _, c := range []struct {
		name   string
		signal headers.Signal
		want   time.Duration
	}{
		{"nothing", headers.Signal{}, 0},
		{"Retry-After", headers.Signal{RetryAfter: time.Second, HasRetryAfter: true, Quotas: []headers.Quota{spent}}, time.Second},
		{"Retry-After of zero", headers.Signal{HasRetryAfter: true, Quotas: []headers.Quota{spent}}, time.Minute},
		{"the latest reset", headers.Signal{Quotas: []headers.Quota{spent, later, spent}}, time.Hour},
		{"of what has none remaining", headers.Signal{Quotas: []headers.Quota{spent, left, advisory, silent}}, time.Minute},
		{"of nothing", headers.Signal{Quotas: []headers.Quota{left, advisory, silent}}, 0},
		{"of a refusal that does not report what remains", headers.Signal{Throttled: true, Quotas: []headers.Quota{unsaid, silent}}, time.Hour},
		{"of a refusal by another quota", headers.Signal{Throttled: true, Quotas: []headers.Quota{unsaid, spent}}, time.Minute},
		{"of a success that does not report what remains", headers.Signal{Quotas: []headers.Quota{unsaid}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, asks := c.signal.Wait(); got != c.want || asks != (c.want > 0) {
				t.Errorf("Wait() = %v, %v, want %v, %v", got, asks, c.want, c.want > 0)
			}
		})
	}
}

func TestNothingToRead(t *testing.T) {
	var none *headers.Dialect
	if got := headers.Parse(nil, received); !equal(got, headers.Signal{}) {
		t.Errorf("Parse(nil) = %+v, want nothing", got)
	}
	if got := none.Parse(&http.Response{StatusCode: 429}, time.Time{}); !got.Throttled {
		t.Errorf("Parse = %+v, want throttled", got)
	}
	if got := headers.Parse(&http.Response{Request: &http.Request{}}, received); !equal(got, headers.Signal{}) {
		t.Errorf("Parse = %+v, want nothing", got)
	}
}

// Ten megabytes of headers are the most that net/http accepts.
func TestHugeHeaderIsNotKept(t *testing.T) {
	long := strings.Repeat("9", 9<<20)
	list := strings.Repeat(`"`+strings.Repeat("n", 100)+`";r=1,`, 140) + `"a";r=0;t=5`
	headers.Parse(response(429, "Retry-After", "1"), received) // the tables of dialects are made once
	for _, c := range []struct {
		name   string
		fields []string
	}{
		{"long values", []string{"Retry-After", long, "RateLimit", long, "X-RateLimit-Reset", long, "Age", long}},
		{"a long name", []string{"X-RateLimit-Remaining-" + strings.Repeat("a", 9<<20), "5"}},
		{"many lines", slices.Repeat([]string{"RateLimit", ""}, 100_000)},
		{"many names", manyNames(100_000)},
		{"a long list", []string{"RateLimit", list}},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := response(429, c.fields...)
			var before, parsed, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			signal := headers.Parse(resp, received)
			runtime.ReadMemStats(&parsed)
			c.fields = nil
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(signal)
			if cost := parsed.TotalAlloc - before.TotalAlloc; cost > 256<<10 {
				t.Errorf("Parse allocates %d bytes, want at most 256 KiB", cost)
			}
			if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 32<<10 {
				t.Errorf("the signal keeps %d bytes, want at most 32 KiB", kept)
			}
		})
	}
}

// The order of a map must not matter, even if not all quotas have a place.
func TestManyQuotasAreTheSameEachTime(t *testing.T) {
	resp := response(429, manyNames(1000)...)
	first := headers.Parse(resp, received).Quotas
	for range 10 {
		if got := headers.Parse(resp, received).Quotas; !slices.Equal(got, first) || len(got) != 64 {
			t.Fatalf("%d quotas %+v, want the same 64 at each reading", len(got), got)
		}
	}
}

func TestPoliciesOfTwoFieldsAreTheSameEachTime(t *testing.T) {
	resp := response(200, "RateLimit-Policy", "10;w=60, 10;w=1", "X-RateLimit-Policy", "100;w=3600", "RateLimit-Limit", "10, 7;w=5", "Gw-RateLimit-Policy", "broken;")
	want := []headers.Quota{
		{Limit: 10, Window: time.Second}, {Limit: 7, Window: 5 * time.Second}, {Limit: 10, Window: time.Minute}, {Limit: 100, Window: time.Hour},
	}
	for i := range want {
		want[i].Unit, want[i].HasLimit, want[i].HasWindow = "requests", true, true
	}
	for range 20 {
		if got := headers.Parse(resp, received).Quotas; !slices.Equal(got, want) {
			t.Fatalf("Quotas = %+v, want %+v", got, want)
		}
	}
}

// Two fields may report one quota in their own words.
func TestQuotaOfTwoFieldsIsTheSameEachTime(t *testing.T) {
	resp := response(200, "RateLimit-Policy", `"minute";q=9;w=5;qu="content-bytes"`, "X-RateLimit-Limit-Minute", "7", "RateLimit-Remaining-Minute", "3")
	want := headers.Quota{Name: "minute", Unit: "content-bytes", Limit: 7, HasLimit: true, Remaining: 3, HasRemaining: true, Window: time.Minute, HasWindow: true}
	for range 50 {
		if got := headers.Parse(resp, received).Quotas; len(got) != 1 || got[0] != want {
			t.Fatalf("Quotas = %+v, want %+v", got, want)
		}
	}
}

func manyNames(n int) (fields []string) {
	for i := range n {
		name := "-Name" + strconv.Itoa(i)
		fields = append(fields, "X-RateLimit-Remaining"+name, "5", "X-RateLimit-Limit"+name, "7")
	}
	return fields
}

func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		name string
		resp *http.Response
		most float64
	}{
		{"ordinary", response(200, ordinary...), 0},
		{"Retry-After", response(429, with("Retry-After", "30")...), 0},
		{"three fields", response(200, with("X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4987", "X-RateLimit-Reset", "1795177800")...), 1},
	} {
		if got := testing.AllocsPerRun(100, func() { headers.Parse(c.resp, received) }); got > c.most {
			t.Errorf("%s: Parse allocates %v times, want at most %v", c.name, got, c.most)
		}
	}
	for vendor := range headers.Vendors() {
		d, _ := headers.Lookup(vendor)
		resp := response(200, ordinary...)
		if got := testing.AllocsPerRun(10, func() { d.Parse(resp, received) }); got > 0 {
			t.Errorf("%s: Parse of an ordinary success allocates %v times, want none", vendor, got)
		}
	}
}

// Gateways ask for a wait under names of their own; Retry-After itself comes first.
func TestRetryAfterUnderOtherNames(t *testing.T) {
	for _, c := range []struct {
		fields []string
		want   time.Duration
		asks   bool
	}{
		{[]string{"X-Retry-After", "7"}, 7 * time.Second, true},
		{[]string{"X-RateLimit-Retry-After", "2.5"}, 2500 * time.Millisecond, true},
		{[]string{"X-Rate-Limit-Retry-After-Seconds", "59"}, 59 * time.Second, true},
		{[]string{"x-acme-ratelimit-retry-after-ms", "250"}, 250 * time.Millisecond, true},
		{[]string{"X-RateLimit-Retry-After", "2026-11-20T12:00:09Z"}, 9 * time.Second, true},
		{[]string{"X-RateLimit-Retry-After", "9", "Retry-After", "3"}, 3 * time.Second, true},
		{[]string{"X-Retry-After", "9", "Retry-After", "soon"}, 9 * time.Second, true},
		{[]string{"X-RateLimit-Retry-After", "-1"}, 0, false},
		{[]string{"X-RateLimit-Retry-Afterwards", "9"}, 0, false},
	} {
		got := headers.Parse(response(429, c.fields...), received)
		if got.RetryAfter != c.want || got.HasRetryAfter != c.asks || len(got.Quotas) > 0 {
			t.Errorf("Parse(%q) = %+v, want RetryAfter %v, %v and no quota", c.fields, got, c.want, c.asks)
		}
	}
}
