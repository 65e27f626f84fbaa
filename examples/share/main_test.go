package main

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/weirgo/weir/examples/internal/programtest"
)

// used is the line of an account: granted to the sync and to the console, refused.
var used = regexp.MustCompile(`sync +(\d+) calls granted, console +(\d+) granted, +(\d+) refused`)

func TestSharesLeaveTheRest(t *testing.T) {
	code, stdout, pictures := programtest.Run(t.Context(), t, share.Exit, "-for", "5s")
	if code != 0 || !pictures {
		t.Errorf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
	lines := used.FindAllStringSubmatch(stdout, -1)
	if len(lines) != 3 {
		t.Fatalf("lines %q, want three\n%s", lines, stdout)
	}
	for _, line := range lines[1:] {
		if granted, _ := strconv.Atoi(line[1]); granted > 4*quota/2 || line[3] != "0" {
			t.Errorf("line %q: want half of up to four windows at most, and nothing refused\n%s", line, stdout)
		}
	}
}
