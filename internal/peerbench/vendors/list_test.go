package main

import "testing"

func TestEveryVendorSaysSomethingKnown(t *testing.T) {
	names := map[string]bool{}
	for _, v := range vendors() {
		if _, ok := says[v.word]; !ok {
			t.Errorf("%s: no way to report as %q", v.rules(), v.word)
		}
		if names[v.name()] {
			t.Errorf("%s is called twice", v.name())
		}
		names[v.name()] = true
		if r := v.rate(); r <= 0 || r > 1000 {
			t.Errorf("%s: rate %v, want one that a machine can serve", v.name(), r)
		}
	}
}
