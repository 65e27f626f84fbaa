package main

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/weirgo/weir/examples/internal/programtest"
)

// served is a client's line: answers, tokens, refused.
var served = regexp.MustCompile(`(?m)(\d+) answers, +(\d+) tokens, .* (\d+) refused$`)

func TestSettledCallsUseMoreOfTheQuota(t *testing.T) {
	code, stdout, pictures := programtest.Run(t.Context(), t, llm.Exit, "-for", "3s")
	if code != 0 || !pictures {
		t.Errorf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
	lines := served.FindAllStringSubmatch(stdout, -1)
	if len(lines) != 2 || lines[0][3] != "0" || lines[1][3] != "0" {
		t.Fatalf("lines %q, want two, without a refusal\n%s", lines, stdout)
	}
	reserved, _ := strconv.Atoi(lines[0][2])
	settled, _ := strconv.Atoi(lines[1][2])
	if settled < 3*reserved/2 {
		t.Errorf("%d tokens were used with reservations only, %d with settlements, want 1.5 times\n%s", reserved, settled, stdout)
	}
}
