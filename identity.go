package weir

import (
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"strconv"
	"strings"
)

// An identity tells one caller's call from all others, and is the same for all
// tries of that call. It compares by what its pointers point at. It keeps those
// values in memory, so no other call can come to have the same identity.
type identity struct {
	name  string        // made of a header, method, URL and credentials; "" if there is no such header
	value reflect.Value // the request's GetBody or Header, which the tries have in common
	url   *url.URL      // of the request, if value is its Header
}

// callMarks are header fields that tell one call from all others. If a mark is
// not unique the world over, the credentials count too. They must not count
// otherwise, because they may be a signature of one try.
var callMarks = [...]struct {
	field  string
	unique bool // the world over: credentials, which may be a signature of the try, do not count
}{
	{"Amz-Sdk-Invocation-Id", true},        // AWS SDKs
	{"X-Goog-Gcs-Idempotency-Token", true}, // google.golang.org/api/storage
	{"Idempotency-Key", false},             // draft-ietf-httpapi-idempotency-key-header; stripe-go
	{"X-Idempotency-Key", false},
}

// retryCount is the field in which SDKs made by Stainless (of OpenAI, Anthropic
// and others) count their retries, from 0.
const retryCount = "X-Stainless-Retry-Count"

// identityOf returns the identity of the request's call. Try is the number of
// this try, from 1, and zero if the client does not tell it.
//
// Clients that leave no mark usually send the same request value again, or a
// shallow copy of it: go-retryablehttp, stripe-go, loops in a user's own code.
func identityOf(req *http.Request) (id identity, try int) {
	try = tryOf(req.Header)
	for _, mark := range callMarks {
		if v := req.Header[mark.field]; len(v) > 0 && v[0] != "" {
			id.name = mark.field + " " + v[0] + " " + req.Method + " " + req.URL.String()
			if !mark.unique {
				id.name += " " + credentialOf(req)
			}
			return id, try
		}
	}
	switch {
	case try == 0 && isResty(req):
		id.name = "resty " + goroutine() + " " + req.Method + " " + req.URL.String() + " " + credentialOf(req) + " " + contentOf(req)
	case try == 0:
		id.value, id.url = reflect.ValueOf(req.Header), req.URL
	case req.GetBody != nil: // each try has a clone of the request, and clones share it
		id.value = reflect.ValueOf(req.GetBody)
	default:
		id.name = retryCount + " " + req.Method + " " + req.URL.String() + " " + credentialOf(req)
	}
	return id, try
}

// isResty reports whether the request is one of resty's. Resty makes a new
// request for each try and leaves nothing in it. Its tries have in common the
// goroutine on which they are made, and all that is sent.
func isResty(req *http.Request) bool {
	agent := req.Header["User-Agent"]
	return len(agent) > 0 && strings.HasPrefix(agent[0], "go-resty/") &&
		(req.Body == nil || req.Body == http.NoBody || req.GetBody != nil)
}

// goroutine returns the number of this goroutine, which no other ever has. Only
// the first line of a stack tells it: "goroutine 7 [running]:".
func goroutine() string {
	var line [40]byte
	_, number, _ := strings.Cut(string(line[:runtime.Stack(line[:], false)]), " ")
	number, _, _ = strings.Cut(number, " ")
	return number
}

// contentOf returns a hash of the request's body.
func contentOf(req *http.Request) string {
	if req.Body == nil || req.Body == http.NoBody {
		return ""
	}
	body, err := req.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = io.Copy(&h, body)
	return strconv.FormatUint(h.Sum64(), 36)
}

// tryOf returns the number of the try that the header tells, and zero if it
// tells none.
func tryOf(h http.Header) int {
	if v := h[retryCount]; len(v) > 0 {
		if n, err := strconv.Atoi(v[0]); err == nil && n >= 0 {
			return n + 1
		}
	}
	if v := h["Amz-Sdk-Request"]; len(v) > 0 { // attempt=2; max=3
		first, _, _ := strings.Cut(v[0], ";")
		if n, err := strconv.Atoi(strings.TrimPrefix(first, "attempt=")); err == nil && n >= 1 {
			return n
		}
	}
	return 0
}
