package headers

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"slices"
	"strings"
)

const (
	// maxDepth bounds how deep a body may be nested before the reading stops.
	maxDepth = 32
	// maxText bounds, in bytes, what is read of a string in a body. GitHub's
	// sentences about its limits have 300.
	maxText = 4 << 10
	// maxNumber bounds, in bytes, what is read of a number in a body. That many
	// digits are more than any bound of a time or a count.
	maxNumber = 64
)

// problems are hints that any vendor's body may hold: the problem types of
// draft-ietf-httpapi-ratelimit-headers-11. That draft shows a temporarily reduced capacity as a 503
// without a wait.
var problems = []Field{
	{Name: "type", Fact: FactRefusal, Words: map[string]Scope{
		"*/http-problem-types#quota-exceeded":             ScopeUnknown,
		"*/http-problem-types#temporary-reduced-capacity": ScopeUnknown,
		"*/http-problem-types#abnormal-usage-detected":    ScopeUnknown,
	}, Statuses: []int{403, 503}, If: map[string]string{"Content-Type": "application/problem+json*"}},
}

// isProblem reports whether the body is a problem document (RFC 9457).
func (r *reader) isProblem() bool {
	return strings.HasPrefix(strings.ToLower(r.resp.Header.Get("Content-Type")), "application/problem+json")
}

// violate notes the name of a quota for which a problem document refuses, within the bound
// of quotas.
func (r *reader) violate(name []byte) {
	if s := clean(string(name)); s != "" && len(r.violated) < maxQuotas && !slices.Contains(r.violated, s) {
		r.violated = append(r.violated, s)
	}
}

// hints yields the hints that the body may hold: those of the dialect, and
// problems.
func (r *reader) hints(yield func(*Field) bool) {
	for _, fields := range [...][]Field{r.dialect.Body, problems} {
		for i := range fields {
			if f := &fields[i]; f.applies(r.resp) && !yield(f) {
				return
			}
		}
	}
}

// text reads the hints in the text of the body itself.
func (r *reader) text(text []byte) {
	for f := range r.hints {
		if f.Name == "" {
			r.value(f, []string{string(bytes.TrimSpace(text))}, ReasonBody)
		}
	}
	if r.asks && r.isRefusalText(string(text[:min(len(text), maxSentence+1)])) {
		r.refuse()
	}
}

// walk yields the strings, numbers and booleans of a JSON text, each with the path to it. The text
// may be cut off; the part before the cut counts. The path and the value are the caller's until it
// returns. Package encoding/json would allocate for each token, and as much as a vendor makes it
// long.
func walk(text []byte, yield func(at path, value []byte)) {
	var at path
	for len(text) > 0 {
		size := 1
		switch c := text[0]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		case '{', '[':
			if len(at) == maxDepth || at.awaitsKey() {
				return
			}
			at = append(at, step{object: c == '{'})
		case '}', ']':
			if len(at) == 0 {
				return
			}
			at = at[:len(at)-1]
			at.valued()
		case '"':
			if size = stringSize(text); size == 0 {
				return
			}
			value := unquote(text[:size])
			if at.awaitsKey() {
				at[len(at)-1].key, at[len(at)-1].keyed = value, true
				break
			}
			yield(at, value[:min(len(value), maxText)])
			at.valued()
		default: // a number, true, false or null
			if size = bytes.IndexAny(text, ",]} \t\r\n"); size <= 0 || at.awaitsKey() {
				return
			}
			if isPlain(text[:size]) {
				yield(at, text[:min(size, maxNumber)])
			}
			at.valued()
		}
		text = text[size:]
	}
}

// isPlain reports whether a word of JSON is true, false or a number without an
// exponent.
func isPlain(word []byte) bool {
	return word[0] == 't' || word[0] == 'f' || word[0] != 'n' && !bytes.ContainsAny(word, "eE")
}

// isDeep reports whether a JSON text is nested deeper than the reading goes.
// Package encoding/json would allocate for the depth.
func isDeep(text []byte) bool {
	depth := 0
	for len(text) > 0 && depth <= maxDepth {
		size := 1
		switch text[0] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			if size = stringSize(text); size == 0 {
				return false
			}
		}
		text = text[size:]
	}
	return depth > maxDepth
}

// stringSize returns the length of the JSON string that text begins with, with
// its quotes. It is zero if the string has no end.
func stringSize(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

// unquote returns the value of a JSON string. A string longer than anything looked for keeps its
// escapes.
func unquote(quoted []byte) []byte {
	if len(quoted) > maxText || bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return nil
	}
	return []byte(text)
}

// elements reads the hints in an XML text, which may be cut off as well. A path
// consists of the names of elements, without their name spaces.
func (r *reader) elements(text []byte) {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.Strict = false
	var at path
	for {
		token, err := decoder.RawToken()
		if err != nil || len(at) > maxDepth {
			return
		}
		switch token := token.(type) {
		case xml.StartElement:
			at = append(at, step{object: true, key: []byte(token.Name.Local)})
		case xml.EndElement:
			at = at[:max(0, len(at)-1)]
		case xml.CharData:
			if value := bytes.TrimSpace(token); len(value) > 0 {
				r.hint(at, value[:min(len(value), maxText)])
			}
		}
	}
}

// hint reads one value of the body.
func (r *reader) hint(at path, value []byte) {
	for f := range r.hints {
		if at.matches(f.Name) {
			r.value(f, []string{string(value)}, ReasonBody)
		}
	}
	if at.matches("violated-policies.*") && r.isProblem() {
		r.violate(value)
	}
	if r.asks && len(value) <= maxSentence {
		r.genericHint(at, string(value))
	}
}

// A path is the current place: the objects and arrays around the next value.
type path []step

// A step is an object with the key of its next value, or an array, or an
// element.
type step struct {
	object bool
	key    []byte // of the next value in the object
	keyed  bool   // the key was read, and its value comes next
}

// awaitsKey reports whether a key comes next.
func (p path) awaitsKey() bool {
	return len(p) > 0 && p[len(p)-1].object && !p[len(p)-1].keyed
}

// valued notes that a value has ended.
func (p path) valued() {
	if len(p) > 0 {
		p[len(p)-1].keyed = false
	}
}

// matches reports whether the path fits a pattern of keys.
func (p path) matches(pattern string) bool {
	if pattern == "" {
		return false // the text of the body itself
	}
	for i := range p {
		rest, more, ok := p[i].cut(pattern)
		if !ok || more != (i < len(p)-1) {
			return false
		}
		pattern = rest
	}
	return len(p) > 0
}

// cut cuts the step's key, or a "*", off the beginning of a pattern. The key may
// hold dots itself: Azure has "odata.error".
func (s *step) cut(pattern string) (rest string, more, ok bool) {
	first, rest, more := strings.Cut(pattern, ".")
	if first == "*" {
		return rest, more, true
	}
	size := len(s.key)
	switch {
	case !s.object || len(pattern) < size || pattern[:size] != string(s.key):
		return "", false, false
	case len(pattern) == size:
		return "", false, true
	}
	return pattern[size+1:], true, pattern[size] == '.'
}
