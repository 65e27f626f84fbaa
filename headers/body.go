package headers

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// maxBody bounds, in bytes, what is read of a body.
const maxBody = 64 << 10

// body reads what the body states, and judges the response anew.
func (r *reader) body() {
	r.asks = r.asksGeneric()
	text, whole := peek(r.resp)
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // Azure writes XML so
	r.text(text)
	switch start := bytes.TrimLeft(text, " \t\r\n"); {
	case len(start) > 0 && start[0] == '<':
		r.elements(text)
	case whole && (isDeep(text) || json.Valid(text)), !whole && !r.unmeasured():
		walk(text, r.hint)
	}
	if r.aged {
		r.tally = tally{}
	}
	r.settle()
	r.judge()
	r.settleGeneric()
}

// unmeasured reports whether the body is that of a success whose length is not
// known. If such a body is too long or too slow to be seen whole, it is no
// refusal.
func (r *reader) unmeasured() bool {
	return r.resp.StatusCode < http.StatusBadRequest && r.resp.ContentLength < 0
}

// awaitsBody reports whether the body may be read and could add to the header.
func (r *reader) awaitsBody() bool {
	return (r.resp.StatusCode >= http.StatusBadRequest || r.dialect.BodyOfSuccess) && (r.needsBody() || r.asksGeneric()) && r.mayReadBody()
}

// needsBody reports whether the dialect's hints could say more than the header
// did. If they cannot, the body is left alone, because it may come slowly.
func (r *reader) needsBody() bool {
	if r.sig.Throttled && r.isProblem() {
		return true
	}
	for f := range r.hints {
		needed := true
		switch f.Fact {
		case FactRetryAfter, FactCost, FactRate:
			needed = !r.sig.HasRetryAfter
		case FactRefusal:
			needed = !r.sig.Throttled || f.NotProcessed && !r.sig.NotProcessed || r.sig.Scope == ScopeUnknown && f.statesScope()
		case FactNoRefusal, FactPermanent, FactScope:
			needed = r.sig.Throttled
		}
		if needed {
			return true
		}
	}
	return false
}

// statesScope reports whether a word of the field names the scope of a refusal.
func (f *Field) statesScope() bool {
	for _, scope := range f.Words {
		if scope != ScopeUnknown {
			return true
		}
	}
	return false
}

// mayReadBody reports whether the body may be read. The body of an error may, because it ends soon.
// That of a success may only if the dialect says so and it is JSON. A body that was unzipped by
// net/http, or came in chunks, has no known length. It may be read if its type is stated to be
// JSON. Streams and non-text bodies are never read.
func (r *reader) mayReadBody() bool {
	resp := r.resp
	if resp.Body == nil || resp.Body == http.NoBody ||
		resp.Request != nil && (resp.Request.Method == http.MethodHead || resp.Request.Method == http.MethodConnect) ||
		resp.StatusCode == http.StatusPartialContent || len(resp.Header["Content-Range"]) > 0 ||
		len(resp.Header["Content-Encoding"]) > 0 {
		return false
	}
	mediaType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	mediaType = strings.ToLower(trim(mediaType))
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		return isJSON(mediaType) || isXML(mediaType) || mediaType == "text/plain" || mediaType == "text/html" && r.readsText()
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return r.dialect.BodyOfSuccess && isJSON(mediaType) && resp.ContentLength != 0 && resp.ContentLength <= maxBody &&
			(mediaType != "" || !r.unmeasured())
	}
	return false
}

// readsText reports whether a hint may be in the words of a page.
func (r *reader) readsText() bool {
	for f := range r.hints {
		if f.Name == "" {
			return true
		}
	}
	return false
}

// isJSON reports whether a media type is JSON in one piece, or not stated.
func isJSON(mediaType string) bool {
	switch mediaType {
	case "", "application/json", "application/problem+json", "text/javascript":
		return true
	}
	return strings.HasPrefix(mediaType, "application/x-amz-json-") ||
		strings.HasSuffix(mediaType, "+json") && !strings.Contains(mediaType, "stream")
}

// isXML reports whether a media type is XML.
func isXML(mediaType string) bool {
	return mediaType == "application/xml" || mediaType == "text/xml" || strings.HasSuffix(mediaType, "+xml")
}
