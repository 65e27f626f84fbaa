package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/weirgo/weir/examples/internal/programtest"
)

// orders is their line: came, rejected.
var orders = regexp.MustCompile(`(?m)^ *orders: (\d+) came, \d+ written, (\d+) rejected`)

func TestFullLineRejectsRowsAndNoOrder(t *testing.T) {
	code, stdout, pictures := programtest.Run(t.Context(), t, writequeue.Exit, "-for", "5s")
	if code != 0 || !pictures {
		t.Errorf("exit %d, pictures %v\n%s", code, pictures, stdout)
	}
	o := orders.FindStringSubmatch(stdout)
	if o == nil || o[1] == "0" || o[2] != "0" {
		t.Errorf("orders %q, want some and none rejected\n%s", o, stdout)
	}
	if !strings.Contains(stdout, "in line: queue is full") {
		t.Errorf("no row was rejected for a full line\n%s", stdout)
	}
}
