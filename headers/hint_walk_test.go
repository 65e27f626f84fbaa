package headers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// decoded is walk's output, as package encoding/json reads it.
func decoded(text []byte) []string {
	var values []string
	type level struct {
		object, keyed bool
		key           string
	}
	var at []level
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return values
		}
		last := len(at) - 1
		delim, _ := token.(json.Delim)
		if delim == '}' || delim == ']' {
			at = at[:last]
			continue
		}
		if last >= 0 && at[last].object {
			at[last].keyed = !at[last].keyed
			if at[last].keyed {
				at[last].key = token.(string)
				continue
			}
		}
		var value string
		switch token := token.(type) {
		case json.Delim:
			if len(at) == maxDepth {
				return values
			}
			at = append(at, level{object: delim == '{'})
			continue
		case nil:
			continue
		case bool:
			value = strconv.FormatBool(token)
		case json.Number:
			if strings.ContainsAny(token.String(), "eE") {
				continue
			}
			value = token.String()[:min(len(token), maxNumber)]
		case string:
			value = token[:min(len(token), maxText)]
		}
		var keys []string
		for _, l := range at {
			keys = append(keys, fmt.Sprint(l.object, l.key))
		}
		values = append(values, fmt.Sprint(keys, value))
	}
}

// FuzzWalk compares walk with package encoding/json, on texts that are JSON.
// Other texts must only not crash it.
func FuzzWalk(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[true,false,null,"x",-0.5,1e9],"c":{"d":{"e":"\u00e9\n"}}}`, `[[],{},"",0]`, ` {"a" : [ 1 , 2 ] } `,
		`{"a":1,"a":2}`, `{"":{"":""}}`, `{"a\"b":"c\\"}`, `[`, `{"a":`, `{"a"`, `]`, `{3:4}`, `{{`, `"x"`, `"\ud800"`, strings.Repeat("[", 40),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got []string
		walk(text, func(at path, value []byte) {
			var keys []string
			for _, s := range at {
				keys = append(keys, fmt.Sprint(s.object, string(s.key)))
			}
			got = append(got, fmt.Sprint(keys, string(value)))
		})
		if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '{' && text[0] != '[' || !json.Valid(text) || bytes.ContainsRune(text, '\uFFFD') || !isUTF8(text) {
			return
		}
		if want := decoded(text); !slices.Equal(got, want) {
			t.Errorf("walk(%q) = %q, want %q", text, got, want)
		}
	})
}

// isUTF8 reports whether package encoding/json leaves the bytes of a text unchanged.
func isUTF8(text []byte) bool { return bytes.Equal(bytes.ToValidUTF8(text, nil), text) }
