package weir

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"iter"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ByHost keys requests by the host that they are sent to. The key is in lower case,
// without a dot at the end and without the port that the scheme implies. An IPv6
// address is in its shortest form.
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

// plain reports whether a host is a key as it is: in lower case, without a port and
// without a dot at its end.
func plain(host string) bool {
	for i := range len(host) {
		if c := host[i]; c == ':' || 'A' <= c && c <= 'Z' || c >= 0x80 {
			return false
		}
	}
	return !strings.HasSuffix(host, ".")
}

// shortest returns an IPv6 address in brackets in its shortest form (RFC 5952), and other hosts
// unchanged.
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
// becomes part of a key. A pattern's method is in capitals, and its host in lower case
// without a port. ByRoute panics if they are not, and if ServeMux would.
func ByRoute(patterns ...string) func(*http.Request) string {
	mux, routes := http.NewServeMux(), make([]RouteConfig, len(patterns))
	for i, pattern := range patterns {
		routes[i].Match = pattern
		if err := route(mux, routes[:i+1]); err != nil {
			panic(fmt.Sprintf("weir: route %q: %v", pattern, err))
		}
	}
	return func(req *http.Request) string {
		if pattern := patternOf(mux, req); pattern != "" {
			return ByHost(req) + " " + pattern
		}
		return ByHost(req)
	}
}

// patternOf returns the pattern that a request matches, or "".
func patternOf(mux *http.ServeMux, req *http.Request) string {
	if req.URL == nil || req.URL.Opaque != "" {
		return ""
	}
	// The mux compares what a server has received: no empty method, and one spelling of a host.
	host := hostOf(&url.URL{Scheme: req.URL.Scheme, Host: cmp.Or(req.Host, req.URL.Host)})
	if req.Method == "" || req.Host != host {
		r := *req
		r.Method, r.Host, req = cmp.Or(req.Method, http.MethodGet), host, &r
	}
	_, pattern := mux.Handler(req)
	return pattern
}

// ByHeader returns a key function that keys requests by host and by the values of
// header fields. Such a field may hold an API key, or an account with a quota of its
// own. The key holds only a hash of the values.
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

// seed is the key of hashes that mean nothing outside this process.
var seed = maphash.MakeSeed()

// routeOf returns the request's path, with "*" for segments that look like identifiers.
func routeOf(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	return template(req.URL.Path)
}

// template returns a path without its query, and with "*" for each segment that
// looks like an identifier.
func template(path string) string {
	path, _, _ = strings.Cut(path, "?")
	segments := strings.Split(path, "/")
	for i, s := range segments[1:] {
		if identifies(s) {
			segments[i+1] = "*"
		}
	}
	return strings.Join(segments, "/")
}

// raw reports whether a lane's key looks like a path with an identifier in it.
func raw(key string) bool {
	path, _, _ := strings.Cut(key, "?")
	return strings.Contains(path, "/") && template(path) != path
}

// identifies reports whether a path segment looks like an identifier. It does if it is
// longer than words are, or has a digit. A version such as v1, v1beta1 or 2010-04-01
// does not.
func identifies(segment string) bool {
	return !version(segment) && (len(segment) > 32 || strings.ContainsAny(segment, "0123456789@"))
}

// maxVersion is the length of the longest versions, such as v2.10beta1.
const maxVersion = 10

// version reports whether a path segment is a version or a date.
func version(segment string) bool {
	if _, err := time.Parse(time.DateOnly, segment); err == nil {
		return true
	}
	return len(segment) > 1 && len(segment) <= maxVersion && segment[0] == 'v' && '0' <= segment[1] && segment[1] <= '9'
}

// credentialFields are the header fields that carry a credential: the usual ones, and then those of
// vendors that count by credential: Figma, BigCommerce, RapidAPI, Azure API Management, VirusTotal,
// APILayer, Pipedrive and Alpaca.
var credentialFields = [...]string{
	"Authorization", "X-Api-Key", "Api-Key", "Cookie",
	"X-Figma-Token", "X-Auth-Token", "X-Rapidapi-Key", "Ocp-Apim-Subscription-Key", "X-Apikey", "Apikey", "X-Api-Token", "Apca-Api-Key-Id",
}

// usualFields is how many of credentialFields are usual ones. A request with a usual field is read no
// further.
const usualFields = 4

// credentialOf returns the credential's hash as a part of a name, which is the same in all processes.
func credentialOf(req *http.Request) string {
	var text []byte
	for part := range credential(req) {
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// credentialHash returns a hash of the request's credential for this process.
func credentialHash(req *http.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for part := range credential(req) {
		h.WriteString(part)
	}
	return h.Sum64()
}

// credential yields the header fields that carry a request's credential.
func credential(req *http.Request) iter.Seq[string] {
	return func(yield func(string) bool) {
		found := false
		for i, name := range credentialFields {
			if found && i >= usualFields {
				return
			}
			for _, value := range req.Header[name] {
				found = true
				if !yield(value) || !yield("\x00") {
					return
				}
			}
			if !yield("\x01") {
				return
			}
		}
	}
}
