package headers_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/weirgo/weir/headers"
)

var received = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// response returns a response with the fields given as name, value, name, value, ...
func response(status int, fields ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
	for i := 0; i < len(fields); i += 2 {
		resp.Header.Add(fields[i], fields[i+1])
	}
	resp.Request = &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: "api.example.com", Path: "/"}}
	return resp
}

var ordinary = []string{
	"Date", "Fri, 20 Nov 2026 12:00:00 GMT",
	"Content-Type", "application/json; charset=utf-8",
	"Content-Length", "1234",
	"Connection", "keep-alive",
	"Cache-Control", "no-cache",
	"Etag", `"33a64df551425fcc"`,
	"Vary", "Accept-Encoding",
	"X-Request-Id", "0123456789abcdef",
}

func with(fields ...string) []string {
	return append(ordinary[:len(ordinary):len(ordinary)], fields...)
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct {
		name string
		resp *http.Response
	}{
		{"ordinary", response(200, ordinary...)},
		{"three fields", response(200, with("X-Ratelimit-Limit", "5000", "X-Ratelimit-Remaining", "4987", "X-Ratelimit-Reset", "1795177800")...)},
		{"Retry-After", response(429, with("Retry-After", "30")...)},
		{"structured", response(200, with("Ratelimit", `"default";r=50;t=30`, "Ratelimit-Policy", `"default";q=100;w=60`)...)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				headers.Parse(c.resp, received)
			}
		})
	}
	b.Run("ordinary in a dialect", func(b *testing.B) {
		b.ReportAllocs()
		resp := response(200, ordinary...)
		var generic *headers.Dialect
		for b.Loop() {
			generic.Parse(resp, received)
		}
	})
}
