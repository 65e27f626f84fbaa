package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestARowForEachVendor(t *testing.T) {
	var out strings.Builder
	all := vendors()[2:5]
	if err := (bench{workers: 4, length: 300 * time.Millisecond}).run(&out, all, 2); err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if want := fmt.Sprintf("| %s | %s |", v.rules(), v.word); strings.Count(out.String(), want) != 1 {
			t.Errorf("no row, or two, for %s in\n%s", v.name(), out.String())
		}
	}
}
