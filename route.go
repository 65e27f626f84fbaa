package weir

import (
	"hash/maphash"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// seed is the key of the hashes of credentials, so that they mean nothing
// outside this process.
var seed = maphash.MakeSeed()

// routeOf returns the request's path, with "*" for what looks like an
// identifier.
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

// identifies reports whether a path segment looks like an identifier. It does
// if it has a digit, unless it is a version such as v1, v1beta1 or 2010-04-01,
// and if it is longer than words are.
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

// credentialOf returns a hash of the header fields that usually carry a
// credential.
func credentialOf(req *http.Request) string {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, name := range [...]string{"Authorization", "X-Api-Key", "Api-Key", "Cookie"} {
		for _, value := range req.Header[name] {
			h.WriteString(value)
			h.WriteByte(0)
		}
		h.WriteByte(1)
	}
	return strconv.FormatUint(h.Sum64(), 16)
}
