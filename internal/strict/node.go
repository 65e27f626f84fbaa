package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A node is a value of a document as written: an object keeps the order of its members, and
// duplicates.
type node struct {
	kind    json.Delim // '{' or '['; 0: a scalar
	members []member
	items   []node
	scalar  any // string, json.Number, bool or nil
}

type member struct {
	key   string
	value node
}

// maxDepth bounds how deep a document may be nested.
const maxDepth = 32

// parse reads a whole document.
func parse(text []byte) (node, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	root, err := next(d, 0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more text after the document")
		}
	}
	if err != nil {
		line := 1 + bytes.Count(text[:d.InputOffset()], []byte("\n"))
		return node{}, fmt.Errorf("line %d: %w", line, err)
	}
	return root, nil
}

// next reads the next value.
func next(d *json.Decoder, depth int) (n node, err error) {
	token, err := d.Token()
	if errors.Is(err, io.EOF) {
		return n, io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return node{scalar: token}, nil
	}
	if depth == maxDepth {
		return n, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	n.kind = delim
	for d.More() {
		var m member
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return n, err
			}
			m.key, _ = key.(string)
		}
		if m.value, err = next(d, depth+1); err != nil {
			return n, err
		}
		if delim == '{' {
			n.members = append(n.members, m)
		} else {
			n.items = append(n.items, m.value)
		}
	}
	_, err = d.Token() // its end
	return n, err
}

// String returns the value for an error: an object or a list by its kind.
func (n node) String() string {
	switch s := n.scalar.(type) {
	case nil:
		switch n.kind {
		case '{':
			return "an object"
		case '[':
			return "a list"
		}
		return "null"
	case string:
		return fmt.Sprintf("the text %.40q", s)
	default:
		return fmt.Sprint(s)
	}
}
