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

// An identity tells one caller's call from all others, over the tries of the
// client that it goes through. It compares by what the pointers in it point at,
// and keeps that alive, so that no other call can come to have the same.
type identity struct {
	name  string        // by a header, with method, URL and credentials; "" if there is none
	value reflect.Value // of the request's GetBody or Header, which the tries have in common
	url   *url.URL      // of the request, where value is its Header
}

// callMarks are header fields that tell one call from all others.
var callMarks = [...]struct {
	field  string
	unique bool // the world over: credentials, which may be a signature of the try, do not count
}{
	{"Amz-Sdk-Invocation-Id", true},        // AWS SDKs
	{"X-Goog-Gcs-Idempotency-Token", true}, // google.golang.org/api/storage
	{"Idempotency-Key", false},             // draft-ietf-httpapi-idempotency-key-header; stripe-go
	{"X-Idempotency-Key", false},
}

// retryCount is the field in which the SDKs that Stainless makes (of OpenAI,
// Anthropic and others) count their retries, from 0.
const retryCount = "X-Stainless-Retry-Count"

// identityOf returns the identity of the request's call, and the number of this
// try of it if the client tells: the first is 1.
//
// Clients that leave no mark mostly send the same request value again, or a
// shallow copy of it: go-retryablehttp, stripe-go, loops of a user's own.
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

// isResty reports whether the request is one of resty's, which makes a new one
// for each try and leaves nothing in it. What its tries have in common is the
// goroutine that it makes them on, and all that is sent.
func isResty(req *http.Request) bool {
	agent := req.Header["User-Agent"]
	return len(agent) > 0 && strings.HasPrefix(agent[0], "go-resty/") &&
		(req.Body == nil || req.Body == http.NoBody || req.GetBody != nil)
}

// goroutine returns the number of this goroutine, which is never another's. The
// runtime tells it in the first line of a stack alone: "goroutine 7 [running]:".
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

// tryOf returns the number of the try that the header tells; zero: it tells
// none.
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
