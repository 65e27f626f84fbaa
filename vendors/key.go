package vendors

import (
	"net/http"
	"strings"

	"github.com/weirgo/weir"
)

// credential keys by the header field that most vendors use.
var credential = weir.ByHeader("Authorization")

// with returns a key function that adds a part to another key, if there is one.
func with(key, part func(*http.Request) string) func(*http.Request) string {
	return func(req *http.Request) string {
		if p := part(req); p != "" {
			return key(req) + " " + p
		}
		return key(req)
	}
}

// between returns the part of a path after a text, up to one of the ends.
func between(path, text, ends string) string {
	_, after, _ := strings.Cut(path, text)
	if i := strings.IndexAny(after, ends); i >= 0 {
		after = after[:i]
	}
	return after
}
