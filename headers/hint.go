package headers

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxDepth bounds the nesting of a body that is looked into.
const maxDepth = 32

// hints reads the dialect's hints from a JSON text, which may be cut off: what stands
// before the cut counts.
func (r *reader) hints(text []byte) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var path jsonPath
	for {
		token, err := decoder.Token()
		if err != nil || len(path) > maxDepth {
			return
		}
		if path.next(token) {
			continue
		}
		switch token := token.(type) {
		case string:
			r.hint(path, token)
		case json.Number:
			r.hint(path, token.String())
		}
	}
}

// hint reads one value of the body.
func (r *reader) hint(path jsonPath, value string) {
	for i := range r.dialect.Body {
		if f := &r.dialect.Body[i]; path.matches(f.Name) {
			r.value(f, []string{value}, reasonBody)
		}
	}
}

// A jsonPath is where a decoder stands: the objects and arrays that it is in.
type jsonPath []jsonStep

type jsonStep struct {
	object bool
	key    string // of the value in the object that is next
	keyed  bool
}

// next takes a token, and reports whether that was structure rather than a value.
func (p *jsonPath) next(token json.Token) bool {
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
		*p = append(*p, jsonStep{object: delim == '{'})
		return true
	}
	return false
}

// matches compares the path with a pattern of keys.
func (p jsonPath) matches(pattern string) bool {
	for i, step := range p {
		key, rest, more := strings.Cut(pattern, ".")
		if key != "*" && (!step.object || key != step.key) || more != (i < len(p)-1) {
			return false
		}
		pattern = rest
	}
	return len(p) > 0
}
