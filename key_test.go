package weir_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
)

func TestByHostIsCanonical(t *testing.T) {
	tests := []struct {
		name string
		url  *url.URL
		want string
	}{
		{"plain", harness.MustParse("https://api.example.com/v1?key=secret"), "api.example.com"},
		{"upper case", harness.MustParse("https://API.Example.COM/"), "api.example.com"},
		{"port of https", harness.MustParse("https://api.example.com:443/"), "api.example.com"},
		{"port of http", harness.MustParse("http://api.example.com:80/"), "api.example.com"},
		{"port of the other scheme", harness.MustParse("http://api.example.com:443/"), "api.example.com:443"},
		{"the other port of the other scheme", harness.MustParse("https://api.example.com:80/"), "api.example.com:80"},
		{"another port", harness.MustParse("https://api.example.com:8443/"), "api.example.com:8443"},
		{"empty port", harness.MustParse("https://api.example.com:/"), "api.example.com"},
		{"user", harness.MustParse("https://user:password@api.example.com/"), "api.example.com"},
		{"IPv4", harness.MustParse("http://127.0.0.1:8080/"), "127.0.0.1:8080"},
		{"IPv6", harness.MustParse("http://[2001:DB8::1]:80/"), "[2001:db8::1]"},
		{"IPv6 without port", harness.MustParse("http://[2001:db8::1]/"), "[2001:db8::1]"},
		{"IPv6 with a port", harness.MustParse("http://[2001:db8::1]:8080/"), "[2001:db8::1]:8080"},
		{"IDN", harness.MustParse("https://BÜCHER.example/"), "bücher.example"},
		{"punycode", harness.MustParse("https://XN--BCHER-KVA.example/"), "xn--bcher-kva.example"},
		{"opaque", &url.URL{Scheme: "https", Host: "api.example.com", Opaque: "//other.example/path"}, "api.example.com"},
		{"no host", harness.MustParse("/path"), ""},
		{"mail", harness.MustParse("mailto:a@example.com"), ""},
		{"nil", nil, ""},
		{"colon only", &url.URL{Scheme: "http", Host: ":"}, ""},
		{"port only", &url.URL{Scheme: "http", Host: ":80"}, ""},
		{"broken IPv6", &url.URL{Scheme: "http", Host: "[::1"}, "[::1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := weir.ByHost(&http.Request{URL: tt.url}); got != tt.want {
				t.Errorf("ByHost(%v) = %q, want %q", tt.url, got, tt.want)
			}
		})
	}
}

func FuzzByHost(f *testing.F) {
	for _, host := range []string{"a.example:80", "[::1]:443", ":", "[", "A:B:80", "\x00"} {
		f.Add("http", host)
		f.Add("https", host)
	}
	f.Fuzz(func(t *testing.T, scheme, host string) {
		u := &url.URL{Scheme: scheme, Host: host, RawQuery: "canary", User: url.User("canary")}
		got := weir.ByHost(&http.Request{URL: u})
		if len(got) > 4*len(host) || !strings.Contains(host, "canary") && strings.Contains(got, "canary") {
			t.Errorf("ByHost(%q) = %q", host, got)
		}
		if again := weir.ByHost(&http.Request{URL: &url.URL{Scheme: scheme, Host: strings.ToLower(host)}}); again != got {
			t.Errorf("ByHost of lower case %q = %q, want %q", host, again, got)
		}
	})
}

func TestByRouteKeysByHostAndPattern(t *testing.T) {
	key := weir.ByRoute("GET /users/{id}", "/users/{id}", "/search", "POST api.example.com/orders/{id...}", "root.example.com/{$}")
	tests := []struct{ method, url, want string }{
		{"GET", "https://api.example.com/users/17?q=secret", "api.example.com GET /users/{id}"},
		{"GET", "https://api.example.com/users/18", "api.example.com GET /users/{id}"},
		{"DELETE", "https://api.example.com/users/17", "api.example.com /users/{id}"},
		{"GET", "https://API.example.com:443/search", "api.example.com /search"},
		{"GET", "https://other.example.com/search", "other.example.com /search"},
		{"POST", "https://api.example.com/orders/1/items/2", "api.example.com POST api.example.com/orders/{id...}"},
		{"GET", "https://api.example.com/nothing/secret", "api.example.com"},
		{"GET", "https://api.example.com", "api.example.com"},
		{"GET", "https://api.example.com/users/17/../secret", "api.example.com GET /users/{id}"},
		{"", "https://api.example.com/users/17", "api.example.com GET /users/{id}"},
		{"POST", "https://API.example.com.:443/orders/1", "api.example.com POST api.example.com/orders/{id...}"},
		{"GET", "https://root.example.com?q=secret", "root.example.com root.example.com/{$}"},
		{"GET", "https:opaque", ""},
	}
	for _, tt := range tests {
		req := &http.Request{Method: tt.method, URL: harness.MustParse(tt.url), Header: http.Header{}}
		req.Host = req.URL.Host
		if got := key(req); got != tt.want {
			t.Errorf("ByRoute of %s %s = %q, want %q", tt.method, tt.url, got, tt.want)
		}
	}
	if got := key(new(http.Request)); got != "" {
		t.Errorf("ByRoute of an empty request = %q, want none", got)
	}
}

// A client's request has no Host where the URL's is meant.
func TestByRouteNeedsNoHostField(t *testing.T) {
	key := weir.ByRoute("api.example.com/orders/{id}")
	req := &http.Request{Method: "GET", URL: harness.MustParse("https://api.example.com/orders/1")}
	if got, want := key(req), "api.example.com api.example.com/orders/{id}"; got != want {
		t.Errorf("ByRoute of a request without Host = %q, want %q", got, want)
	}
}

// A pattern that no request could match is a mistake, too.
func TestByRoutePanicsOnBadPattern(t *testing.T) {
	for pattern, want := range map[string]string{
		"GET /users/{": `route "GET /users/{": `, "get /users": `method "get" is not in capitals`, "get\t/users": `method "get" is not in capitals`,
		"GET API.example.com/": `host "API.example.com" is not in lower case`, "api.example.com:443/": `host "api.example.com:443" has a port`,
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("ByRoute of %q panics with %q, want %s", pattern, text, want)
				}
			}()
			weir.ByRoute(pattern)
		}()
	}
}

func TestByHeaderHidesValues(t *testing.T) {
	names := []string{"x-api-key", "X-Account"}
	key := weir.ByHeader(names...)
	request := func(header http.Header) *http.Request {
		return &http.Request{URL: harness.MustParse("https://api.example.com/"), Header: header}
	}
	a := key(request(http.Header{"X-Api-Key": {"canary-a"}}))
	if !strings.HasPrefix(a, "api.example.com ") || strings.Contains(a, "canary") {
		t.Errorf("key = %q, want host and a hash", a)
	}
	if again := key(request(http.Header{"X-Api-Key": {"canary-a"}, "X-Other": {"b"}})); again != a {
		t.Errorf("key of the same value = %q, want %q", again, a)
	}
	seen := map[string]http.Header{a: {}}
	for _, header := range []http.Header{
		nil,
		{"X-Api-Key": {"canary-b"}},
		{"X-Api-Key": {"canary-a", ""}},
		{"X-Api-Key": {"canary", "-a"}},
		{"X-Account": {"canary-a"}},
		{"X-Api-Key": {"canary-a"}, "X-Account": {"c"}},
		{"X-Api-Key": {"a", "b"}},
		{"X-Api-Key": {"ab"}},
		{"X-Api-Key": {"a b"}},
		{"X-Api-Key": {`a" "b`}},
		{"X-Api-Key": {"a] [b"}},
		{"X-Api-Key": {"a"}, "X-Account": {"b"}},
		{"X-Api-Key": {"canary-a\x00c"}},
		{"X-Api-Key": {"canary-a\x00\x01c"}},
	} {
		got := key(request(header))
		if other, ok := seen[got]; ok {
			t.Errorf("key of %v = that of %v", header, other)
		}
		seen[got] = header
	}
	if names[0] != "x-api-key" {
		t.Errorf("names after = %q: the caller's slice was changed", names)
	}
}
