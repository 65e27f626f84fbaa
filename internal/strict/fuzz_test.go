package strict_test

import (
	"encoding/json"
	"testing"

	"github.com/weirgo/weir/internal/strict"
)

// A document that Decode accepts is valid for package json, and is written and read again
// unchanged.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"limits": ["100/s burst 20"], "line": {"maxWait": "1s"}, "shares": {"a": 1}}`))
	f.Add([]byte(`{"limits": [], "policy": {}, "name": "\ud800"}`))
	f.Add([]byte(`{"on": true} x`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, second document
		if strict.Decode(text, &first) != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("Decode(%q) = nil, but it is no JSON", text)
		}
		again, err := strict.Encode(first)
		if err == nil {
			err = strict.Decode(again, &second)
		}
		if err != nil {
			t.Fatalf("Decode(%q) is written as %q, which is not read: %v", text, again, err)
		}
		if last, _ := strict.Encode(second); string(last) != string(again) {
			t.Fatalf("Decode(%q) is written as %q, and then as %q", text, again, last)
		}
	})
}
