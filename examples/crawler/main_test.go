package main

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/weirgo/weir/examples/internal/programtest"
)

// line is that of a host: its name, its pages, the most at once.
var line = regexp.MustCompile(`(?m)^(\w+)\.test: +(\d+) pages, (\d) at once`)

func TestPauseOfOneHostDelaysNoOther(t *testing.T) {
	code, stdout, pictures := programtest.Run(t.Context(), t, crawler.Exit, "-for", "4.5s")
	if code != 0 || !pictures {
		t.Errorf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
	lines := line.FindAllStringSubmatch(stdout, -1)
	if len(lines) != 6 {
		t.Fatalf("%d lines, want one for each host\n%s", len(lines), stdout)
	}
	for _, l := range lines {
		least, most := 4, 6 // one a second, on a busy machine
		switch l[1] {
		case "blog": // paused at 2 s, for 4 s
			least, most = 2, 2
		case "shop": // 2 of 2.5 s each at once, so the fifth would begin after 5 s
			least, most = 2, 4
		}
		if pages, _ := strconv.Atoi(l[2]); pages < least || pages > most || l[3] > "2" {
			t.Errorf("%s: %s pages, %s at once; want %d to %d, 2 at once at most", l[1], l[2], l[3], least, most)
		}
	}
}
