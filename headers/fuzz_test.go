package headers_test

import (
	"bytes"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirgo/weir/headers"
)

// checkBounds holds for every signal of any response.
func checkBounds(t *testing.T, s headers.Signal) {
	t.Helper()
	if s.RetryAfter < 0 || s.RetryAfter > month || !s.HasRetryAfter && s.RetryAfter != 0 {
		t.Errorf("RetryAfter = %v, %v, want within 0 and 31 days", s.RetryAfter, s.HasRetryAfter)
	}
	if wait, asks := s.Wait(); wait < 0 || wait > month || asks != (wait > 0) {
		t.Errorf("Wait() = %v, %v, want within 0 and 31 days", wait, asks)
	}
	if !slices.Contains(reasons, s.Reason) || (s.Throttled || s.Permanent) != (s.Reason != "") {
		t.Errorf("Reason = %q, with Throttled %v and Permanent %v", s.Reason, s.Throttled, s.Permanent)
	}
	if s.Scope > headers.ScopeGlobal || !s.Throttled && (s.Scope != 0 || s.NotProcessed) {
		t.Errorf("Scope = %v, NotProcessed = %v of no refusal", s.Scope, s.NotProcessed)
	}
	if len(s.Quotas) > 64 {
		t.Errorf("%d quotas, want at most 64", len(s.Quotas))
	}
	for _, q := range s.Quotas {
		checkQuota(t, q)
	}
}

var reasons = []headers.Reason{
	"", headers.Reason429, headers.Reason503, headers.Reason403, headers.ReasonStatus,
	headers.ReasonField, headers.ReasonBody, headers.ReasonZeroQuota, headers.ReasonNoRetry,
}

func checkQuota(t *testing.T, q headers.Quota) {
	t.Helper()
	good := isCount(q.Limit, q.HasLimit) && isCount(q.Remaining, q.HasRemaining) &&
		q.Reset >= 0 && q.Reset <= month && (q.HasReset || q.Reset == 0) &&
		q.Window >= 0 && q.HasWindow == (q.Window > 0) &&
		(q.HasLimit || q.HasRemaining || q.HasReset || q.HasWindow) &&
		isText(q.Name) && isText(q.Unit) && q.Unit != "" && q.ResetKind <= headers.ResetWindow
	if !good {
		t.Errorf("quota out of bounds: %+v", q)
	}
}

func isCount(n float64, has bool) bool {
	return n >= 0 && n <= 1<<53 && !math.IsNaN(n) && (has || n == 0)
}

func isText(s string) bool {
	return len(s) <= 64 && utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{
		"120", "2.128", "9223372037", "18446744074", "-1", "1e9", "0x1p10", "NaN", "5, 60", "1795176060",
		"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "2026-11-21T00:00:00Z",
	} {
		f.Add(seed, "Fri, 20 Nov 2026 12:00:00 GMT", 429)
	}
	f.Fuzz(func(t *testing.T, value, date string, status int) {
		for _, field := range []string{"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After"} {
			got := parse(status, field, value, "Date", date)
			checkBounds(t, got)
			if got.HasRetryAfter && !strings.ContainsFunc(value, func(c rune) bool { return '0' <= c && c <= '9' }) {
				t.Errorf("%s: %q asks for %v without a digit", field, value, got.RetryAfter)
			}
		}
	})
}

func FuzzRateLimit(f *testing.F) {
	for _, seed := range [][2]string{
		{`"default";r=50;t=30`, `"default";q=100;w=60;qu="requests";pk=:cGFydA==:`},
		{`limit=100, remaining=50, reset=5`, `100;w=10`},
		{`"a";r=1;t=@`, `"fixed window";"api";q=500;w=300`},
		{`quota;t=1`, `10;w=1;burst=1000, 50;w=60`},
		{`("a" "b");r=1, %"f%c3%bc";t=2`, `a;w=0, b;q=999999999999999;w=999999999999999`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, limit, policy string) {
		checkBounds(t, parse(200, "RateLimit", limit, "RateLimit-Policy", policy))
		checkBounds(t, parse(429, "RateLimit", policy, "RateLimit-Policy", limit, "RateLimit", limit))
	})
}

func FuzzLegacyRateLimit(f *testing.F) {
	for _, seed := range [][3]string{
		{"100", "99", "50"},
		{"100, 100;w=60;burst=1000;comment=\"a, b\", 5000;w=3600", "7;foo=bar", "1795176041"},
		{"10.00", "598.0", "Tue Feb 16 2021 09:02:42 GMT+0100 (Central European Standard Time)"},
		{"0", "-27689", "1d12h"},
		{"1e308", "NaN", "00:00:05"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, limit, remaining, reset string) {
		checkBounds(t, parse(429,
			"X-RateLimit-Limit", limit, "X-RateLimit-Remaining", remaining, "X-RateLimit-Reset", reset,
			"X-RateLimit-Limit-Tokens-Minute", reset, "X-RateLimit-Remaining-Tokens-Minute", limit))
	})
}

// FuzzParse reads whole responses in every vendor's dialect: one line for each field, then an empty
// line and the body.
func FuzzParse(f *testing.F) {
	dialects := []*headers.Dialect{nil} // chosen by the first byte of the input
	paths, err := filepath.Glob("testdata/vendors/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range slices.Concat(readVectors(f), readVectorsOf(f, paths...)) {
		d, _ := headers.Lookup(v.Vendor)
		if !slices.Contains(dialects, d) {
			dialects = append(dialects, d)
		}
		resp := v.response()
		if len(resp.Header.Get("Retry-After"))+len(resp.Header.Get("Ratelimit")) > 1000 {
			continue
		}
		var text strings.Builder
		resp.Header.Write(&text)
		text.WriteString("\n")
		if v.Body != nil {
			text.WriteString(*v.Body)
		}
		f.Add(uint8(slices.Index(dialects, d)), v.Status, text.String())
	}
	f.Fuzz(func(t *testing.T, vendor uint8, status int, text string) {
		head, body, _ := strings.Cut(strings.ReplaceAll(text, "\r", ""), "\n\n")
		resp := response(status)
		for line := range strings.Lines(head) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			resp.Header.Add(name, value)
		}
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		d := dialects[int(vendor)%len(dialects)]
		first := d.Parse(resp, received)
		checkBounds(t, first)
		// The order of a map must not matter.
		for range 3 {
			if got := d.Parse(resp, received); !reflect.DeepEqual(got, first) {
				t.Fatalf("Parse = %+v, and then %+v", first, got)
			}
		}
		if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, []byte(body)) {
			t.Errorf("body reads as %q, %v, want %q", got, err, body)
		}
	})
}
