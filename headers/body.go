package headers

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// maxBody bounds what is read of a body.
const maxBody = 64 << 10

// body reads the hints in the body, where the dialect has some that matter still,
// and reports whether it read anything.
func (r *reader) body() bool {
	if !r.needsBody() || !r.mayReadBody() {
		return false
	}
	text, whole := peek(r.resp)
	if whole && !json.Valid(text) {
		return false
	}
	r.hints(text)
	return true
}

// needsBody reports whether a hint could tell more than the header did: a body that
// cannot is left alone, for it may come slowly.
func (r *reader) needsBody() bool {
	for i := range r.dialect.Body {
		needed := true
		switch r.dialect.Body[i].Tells {
		case FactRetryAfter:
			needed = !r.sig.HasRetryAfter
		case FactRefusal:
			needed = !r.sig.Throttled
		case FactPermanent, FactScope:
			needed = r.sig.Throttled
		}
		if needed {
			return true
		}
	}
	return false
}

// mayReadBody keeps to the bodies that end soon: those of an error, and of a success
// only where the dialect says so and the length is known. It never touches a stream,
// nor what is not JSON in the clear.
func (r *reader) mayReadBody() bool {
	resp := r.resp
	if resp.Body == nil || resp.Body == http.NoBody ||
		resp.Request != nil && (resp.Request.Method == http.MethodHead || resp.Request.Method == http.MethodConnect) ||
		resp.StatusCode == http.StatusPartialContent || len(resp.Header["Content-Range"]) > 0 ||
		len(resp.Header["Content-Encoding"]) > 0 || !isJSON(resp.Header.Get("Content-Type")) {
		return false
	}
	switch {
	case resp.StatusCode >= 400:
		return true
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return r.dialect.BodyOfSuccess && 0 < resp.ContentLength && resp.ContentLength <= maxBody
	}
	return false
}

// isJSON reports whether a media type is JSON in one piece, or not stated.
func isJSON(mediaType string) bool {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	mediaType = strings.ToLower(trim(mediaType))
	switch mediaType {
	case "", "application/json", "application/problem+json", "text/javascript":
		return true
	}
	return strings.HasPrefix(mediaType, "application/x-amz-json-") ||
		strings.HasPrefix(mediaType, "application/vnd.") && strings.HasSuffix(mediaType, "+json")
}

// peek reads the beginning of a body and puts it back; whole says that it is all of it.
// What was read once is known even when the body has been read or closed since.
func peek(resp *http.Response) (text []byte, whole bool) {
	b, ok := resp.Body.(*peeked)
	if !ok {
		b = &peeked{rest: resp.Body}
		b.text, b.err = io.ReadAll(io.LimitReader(b.rest, maxBody))
		if b.err == nil && len(b.text) < maxBody {
			b.err = io.EOF
		}
		resp.Body = b
	}
	return b.text, errors.Is(b.err, io.EOF)
}

// A peeked is a body whose beginning was read: it reads that first, then the rest.
type peeked struct {
	text   []byte
	at     int   // what of text was read since
	err    error // how the rest ended, where it did
	rest   io.ReadCloser
	closed atomic.Bool // a body may be closed while it is read
}

func (b *peeked) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return b.rest.Read(p) // which says in its own way that it is closed
	}
	if b.at < len(b.text) {
		n := copy(p, b.text[b.at:])
		b.at += n
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.rest.Read(p)
}

func (b *peeked) Close() error {
	b.closed.Store(true)
	return b.rest.Close()
}
