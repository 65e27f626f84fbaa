package weir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// ByHost keys requests by the host that they are sent to. The key is in lower
// case, without the port that the scheme implies and without a dot at the end;
// an IPv6 address is in its shortest form.
func ByHost(req *http.Request) string { return hostOf(req.URL) }

// hostOf returns the key of a URL's host.
func hostOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	host := u.Host
	if plain(host) {
		return host
	}
	port := ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && (u.Port() != "" || i == len(host)-1) {
		host, port = host[:i], host[i:]
	}
	if port == ":" || port == ":80" && u.Scheme == "http" || port == ":443" && u.Scheme == "https" {
		port = ""
	}
	return shortest(strings.TrimSuffix(strings.ToLower(host), ".")) + port
}

// plain reports whether a host needs no change to be a key: it is in lower
// case, without a port and without a dot at its end.
func plain(host string) bool {
	for i := range len(host) {
		if c := host[i]; c == ':' || 'A' <= c && c <= 'Z' || c >= 0x80 {
			return false
		}
	}
	return !strings.HasSuffix(host, ".")
}

// shortest returns an IPv6 address in brackets in its shortest form (RFC 5952),
// and other hosts as they are.
func shortest(host string) string {
	if !strings.HasPrefix(host, "[") {
		return host
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && ip.Is6() {
		return "[" + ip.String() + "]"
	}
	return host
}

// ByRoute returns a key function that keys requests by host and by the pattern
// that they match, in the syntax of [http.ServeMux]: "GET /users/{id}".
// Requests that match none share their host's lane, so no path parameter ever
// becomes part of a key. It panics if ServeMux would.
func ByRoute(patterns ...string) func(*http.Request) string {
	mux := http.NewServeMux()
	for _, pattern := range patterns {
		mux.Handle(pattern, http.NotFoundHandler())
	}
	return func(req *http.Request) string {
		host := ByHost(req)
		if req.URL == nil || req.URL.Path == "" {
			return host
		}
		if req.Host == "" { // the mux matches hosts by it; the base takes the URL's
			r := *req
			r.Host, req = req.URL.Host, &r
		}
		if _, pattern := mux.Handler(req); pattern != "" {
			return host + " " + pattern
		}
		return host
	}
}

// ByHeader returns a key function that keys requests by host and by the values
// of header fields, such as an API key or an account with a quota of its own.
// The key holds only a hash of the values.
func ByHeader(names ...string) func(*http.Request) string {
	names = slices.Clone(names)
	for i, name := range names {
		names[i] = http.CanonicalHeaderKey(name)
	}
	return func(req *http.Request) string {
		h := sha256.New()
		for _, name := range names {
			fmt.Fprintf(h, "%q", req.Header[name]) // quoted, so that no two lists read the same
		}
		return ByHost(req) + " " + hex.EncodeToString(h.Sum(nil)[:16])
	}
}
