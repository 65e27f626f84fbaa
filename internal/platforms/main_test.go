package main

import (
	"strings"
	"testing"
)

func TestCheckFindsWhatIsWrongElsewhere(t *testing.T) {
	for _, test := range []struct{ system, arch, want string }{
		{"linux", "amd64", ""},
		{"linux", "386", "overflows"},
		{"windows", "amd64", "t.Nothing undefined"},
	} {
		n, err := check(test.system, test.arch, "./testdata/wide")
		switch {
		case test.want == "" && (err != nil || n == 0):
			t.Errorf("%s/%s: %d packages, %v", test.system, test.arch, n, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s/%s: %v, want %q", test.system, test.arch, err, test.want)
		}
	}
}
