package headers

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strconv"
	"strings"
)

// maxDepth bounds how deep a body may be nested before the reading stops.
const maxDepth = 32

// problems are hints that any vendor's body may hold: the problem types of
// draft-ietf-httpapi-ratelimit-headers-10. That draft shows a capacity that is
// reduced for a while with a 503 and no wait.
var problems = []Field{
	{Name: "type", Tells: FactRefusal, Words: map[string]Scope{
		"*/http-problem-types#quota-exceeded":             ScopeUnknown,
		"*/http-problem-types#temporary-reduced-capacity": ScopeUnknown,
		"*/http-problem-types#abnormal-usage-detected":    ScopeUnknown,
	}, Statuses: []int{403, 503}, If: map[string]string{"Content-Type": "application/problem+json*"}},
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

// text reads the hints that stand in the text of the body itself.
func (r *reader) text(text []byte) {
	for f := range r.hints {
		if f.Name == "" {
			r.value(f, []string{string(bytes.TrimSpace(text))}, ReasonBody)
		}
	}
	if r.asks && r.isRefusalText(string(text[:min(len(text), maxTelling+1)])) {
		r.refuse()
	}
}

// members reads the hints in a JSON text. The text may be cut off; what stands
// before the cut counts.
func (r *reader) members(text []byte) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var at path
	for {
		token, err := decoder.Token()
		if err != nil || len(at) > maxDepth {
			return
		}
		if at.next(token) {
			continue
		}
		switch token := token.(type) {
		case string:
			r.hint(at, token)
		case json.Number:
			r.hint(at, token.String())
		case bool:
			r.hint(at, strconv.FormatBool(token))
		}
	}
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
			at = append(at, step{object: true, key: token.Name.Local})
		case xml.EndElement:
			at = at[:max(0, len(at)-1)]
		case xml.CharData:
			if value := string(bytes.TrimSpace(token)); value != "" {
				r.hint(at, value)
			}
		}
	}
}

// hint reads one value of the body.
func (r *reader) hint(at path, value string) {
	for f := range r.hints {
		if at.matches(f.Name) {
			r.value(f, []string{value}, ReasonBody)
		}
	}
	if r.asks {
		r.anybody(at, value)
	}
}

// A path is where a decoder stands: the objects and arrays around its next
// value.
type path []step

// A step is an object with the key of its next value, or an array, or an
// element.
type step struct {
	object bool
	key    string // of the next value in the object
	keyed  bool   // the key was read, and its value comes next
}

// next takes a token into the path. It reports whether the token was structure
// rather than a value.
func (p *path) next(token json.Token) bool {
	if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
		*p = (*p)[:len(*p)-1]
		return true
	}
	if last := len(*p) - 1; last >= 0 && (*p)[last].object {
		step := &(*p)[last]
		step.keyed = !step.keyed
		if step.keyed {
			step.key, _ = token.(string)
			return true
		}
	}
	if delim, ok := token.(json.Delim); ok {
		*p = append(*p, step{object: delim == '{'})
		return true
	}
	return false
}

// matches reports whether the path fits a pattern of keys.
func (p path) matches(pattern string) bool {
	if pattern == "" {
		return false // the text of the body itself
	}
	for i, step := range p {
		key, rest, more := strings.Cut(pattern, ".")
		if key != "*" && (!step.object || key != step.key) || more != (i < len(p)-1) {
			return false
		}
		pattern = rest
	}
	return len(p) > 0
}
