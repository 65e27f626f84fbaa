package testserver_test

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// A bucket with 7 of 20 permits left and part of another, after a granted call at half past a
// second.
func sevenOfTwenty() testserver.Decision {
	return testserver.Decision{
		Granted: true,
		Now:     time.Date(2026, 3, 1, 12, 0, 0, 500_000_000, time.UTC),
		Standings: []testserver.Standing{{
			Limit: testserver.TokenBucket(200, time.Second, 20), Remaining: 7,
			Reset: 63 * time.Millisecond, Next: 3 * time.Millisecond,
		}},
	}
}

func TestDialectsAndViews(t *testing.T) {
	type fields map[string]string
	tests := []struct {
		name  string
		style testserver.Style
		want  fields
	}{
		{"OpenAI", testserver.OpenAI, fields{
			"X-Ratelimit-Limit-Requests": "20", "X-Ratelimit-Remaining-Requests": "7", "X-Ratelimit-Reset-Requests": "63ms"}},
		{"Anthropic", testserver.Anthropic, fields{
			"Anthropic-Ratelimit-Requests-Limit": "20", "Anthropic-Ratelimit-Requests-Remaining": "7",
			"Anthropic-Ratelimit-Requests-Reset": "2026-03-01T12:00:01Z"}},
		{"Okta", testserver.Okta, fields{
			"X-Rate-Limit-Limit": "20", "X-Rate-Limit-Remaining": "7", "X-Rate-Limit-Reset": "1772366401"}},
		{"Heroku", testserver.Heroku, fields{"Ratelimit-Remaining": "7"}},
		{"Zendesk", testserver.Zendesk, fields{
			"X-Rate-Limit": "20", "X-Rate-Limit-Remaining": "7",
			"Ratelimit-Limit": "20", "Ratelimit-Remaining": "7", "Ratelimit-Reset": "1"}},
		{"Discord", testserver.Discord, fields{
			"X-Ratelimit-Limit": "20", "X-Ratelimit-Remaining": "7", "X-Ratelimit-Reset": "1772366400.563",
			"X-Ratelimit-Reset-After": "0.063", "X-Ratelimit-Bucket": "80c17d2f203122d936070c88c8d10f33"}},
		{"Shopify", testserver.Shopify, fields{"X-Shopify-Shop-Api-Call-Limit": "13/20"}},
		{"Spring Cloud Gateway", testserver.Spring, fields{
			"X-Ratelimit-Burst-Capacity": "20", "X-Ratelimit-Remaining": "7",
			"X-Ratelimit-Replenish-Rate": "200", "X-Ratelimit-Requested-Tokens": "1"}},
		{"Printful", testserver.Printful, fields{
			"X-Ratelimit-Remaining": "7", "X-Ratelimit-Reset": "0.003", "X-Ratelimit-Policy": "200;w=1;"}},
		{"Kong", testserver.Kong, fields{
			"X-Ratelimit-Limit-Second": "20", "X-Ratelimit-Remaining-Second": "7",
			"Ratelimit-Limit": "20", "Ratelimit-Remaining": "7", "Ratelimit-Reset": "1"}},
		{"the next permit", testserver.Seen(testserver.OpenAI, testserver.UntilNext), fields{
			"X-Ratelimit-Limit-Requests": "20", "X-Ratelimit-Remaining-Requests": "7", "X-Ratelimit-Reset-Requests": "3ms"}},
		{"free now", testserver.Seen(testserver.RateLimit, testserver.UntilFree), fields{
			"Ratelimit-Policy": `"token-bucket";q=200;w=1`, "Ratelimit": `"token-bucket";r=7;t=0`}},
		{"Auth0", testserver.Auth0, fields{
			"X-Ratelimit-Limit": "20", "X-Ratelimit-Remaining": "7", "X-Ratelimit-Reset": "1772366400"}},
		{"no reset", testserver.Seen(testserver.XRateLimitEpoch, testserver.NoReset), fields{
			"X-Ratelimit-Limit": "20", "X-Ratelimit-Remaining": "7"}},
		{"no reset, draft 08", testserver.Seen(testserver.RateLimit, testserver.NoReset), fields{
			"Ratelimit-Policy": `"token-bucket";q=200;w=1`, "Ratelimit": `"token-bucket";r=7`}},
		{"no reset, draft 03", testserver.Seen(testserver.RateLimitLegacy, testserver.NoReset), fields{
			"Ratelimit-Limit": "20, 200;w=1", "Ratelimit-Remaining": "7"}},
		{"no reset, coarse", testserver.Seen(testserver.Coarse, testserver.NoReset), fields{
			"Ratelimit-Limit": "20", "Ratelimit-Remaining": "7"}},
		{"the rate as limit", testserver.Seen(testserver.XRateLimitDelta, testserver.RateAsLimit), fields{
			"X-Ratelimit-Limit": "200", "X-Ratelimit-Remaining": "7", "X-Ratelimit-Reset": "1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, d := make(http.Header), sevenOfTwenty()
			tt.style(h, d)
			got := make(fields)
			for field := range h {
				got[field] = h.Get(field)
			}
			if !maps.Equal(got, tt.want) {
				t.Errorf("header = %v, want %v", got, tt.want)
			}
			if n, ok := testserver.Remaining(h); n != 7 || !ok {
				t.Errorf("Remaining = %d, %v, want 7", n, ok)
			}
			if got, want := d.Standings[0], sevenOfTwenty().Standings[0]; got != want {
				t.Errorf("the decision became %+v, want it unchanged", got)
			}
		})
	}
	if n, ok := testserver.Remaining(http.Header{"Retry-After": {"1"}}); ok {
		t.Errorf("Remaining without a count = %d, want none", n)
	}
}

func TestUntilFreeWaitsWhenNothingIsLeft(t *testing.T) {
	spent := sevenOfTwenty()
	spent.Standings[0].Remaining = 0
	if got := testserver.UntilFree(spent).Standings[0].Reset; got != 3*time.Millisecond {
		t.Errorf("reset = %v with nothing left, want the next permit's 3ms", got)
	}
}

func TestTwoNodesDisagreeByTheShare(t *testing.T) {
	seen := make(map[int]bool)
	nodes := testserver.TwoNodes(0.1)
	for range 1000 {
		seen[nodes(sevenOfTwenty()).Standings[0].Remaining] = true
	}
	if want := map[int]bool{7: true, 8: true, 9: true}; !maps.Equal(seen, want) {
		t.Errorf("reported %v of 7 left, want %v", seen, want)
	}
}

func TestStaleReportsThePast(t *testing.T) {
	stale := testserver.Stale(1, time.Second)
	var got []int
	for i := range 4 {
		d := sevenOfTwenty()
		d.Now = d.Now.Add(time.Duration(i) * 600 * time.Millisecond)
		d.Standings[0].Remaining = i
		got = append(got, stale(d).Standings[0].Remaining)
	}
	for i, want := range []int{0, 0, 0, 1} {
		if got[i] != want {
			t.Fatalf("reported %v, want the standing of a second before: 0 0 0 1", got)
		}
	}
	if d := testserver.Stale(0, time.Second)(sevenOfTwenty()); d.Standings[0].Remaining != 7 {
		t.Errorf("never stale: reported %d, want 7", d.Standings[0].Remaining)
	}
}
