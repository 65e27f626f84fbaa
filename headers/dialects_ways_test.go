package headers_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/weirgo/weir/headers"
)

// Each place where a row looks for a refusal, and each status that it says
// refuses, is in a vector of that vendor.
func TestDialectsHaveAVectorForEachWayToRefuse(t *testing.T) {
	paths, err := filepath.Glob("testdata/vendors/*.json")
	if err != nil {
		t.Fatal(err)
	}
	vectors := map[*headers.Dialect][]vector{}
	for _, v := range slices.Concat(readVectors(t), readVectorsOf(t, paths...)) {
		d, _ := headers.Lookup(v.Vendor)
		vectors[d] = append(vectors[d], v)
	}
	for vendor := range headers.Vendors() {
		d, _ := headers.Lookup(vendor)
		if len(vectors[d]) == 0 {
			t.Errorf("%s has no vector", vendor)
		}
		for _, status := range slices.Concat(d.Refuses, d.RefusesWithWait, d.RefusesByQuota) {
			if !slices.ContainsFunc(vectors[d], func(v vector) bool { return v.Status == status && v.Expect.Throttled }) {
				t.Errorf("%s has no vector of a refusal under %d", vendor, status)
			}
		}
		for _, f := range d.Fields {
			if f.Tells == headers.FactRefusal && !slices.ContainsFunc(vectors[d], func(v vector) bool { return v.found(f, nil) }) {
				t.Errorf("%s has no vector of a refusal in the field %s", vendor, f.Name)
			}
		}
		for _, f := range d.Body {
			if f.Tells == headers.FactRefusal && !slices.ContainsFunc(vectors[d], func(v vector) bool { return v.found(headers.Field{}, &f) }) {
				t.Errorf("%s has no vector of a refusal in the body at %q", vendor, f.Name)
			}
		}
	}
}

// found reports whether one of the field's words stands in the vector. A dialect
// that takes each response for a refusal, unless the word stands there, shows
// it.
func (v *vector) found(field headers.Field, body *headers.Field) bool {
	d := &headers.Dialect{Refuses: []int{v.Status}, BodyOfSuccess: true}
	if body != nil {
		hint := *body
		hint.Tells = headers.FactNoRefusal
		d.Body = []headers.Field{hint}
	} else {
		field.Tells = headers.FactNoRefusal
		d.Fields = []headers.Field{field}
	}
	return !d.Parse(v.response(), v.ObservedAt).Throttled
}
