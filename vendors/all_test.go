package vendors_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/vendors"
)

var update = flag.Bool("update", false, "write docs/vendors.md anew")

const page = "../docs/vendors.md"

// The page of all numbers is made from the rows:
//
//	go test ./vendors -run Page -update
func TestPageOfAllNumbersIsFresh(t *testing.T) {
	want := written()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != want {
		t.Errorf("%s is stale (%v): go test ./vendors -run Page -update", page, err)
	}
}

// written returns the page.
func written() string {
	var b strings.Builder
	b.WriteString(`# Vendors

The numbers behind the presets of [package vendors](../vendors). Each row has the page that states the number, and the day on which that page, or a
stored copy of it, was last read. A number is that of the lowest documented plan. This page is made from the rows: ` + "`go test ./vendors -run Page -update`" + `.

| method | means |
| --- | --- |
| documented | the page states the number |
| reported | the page states no number that could be read; each answer reports it, and the lane keeps to that |
| learned | there is no number, and answers report none; the lane learns it from refusals |
| unverified | the page could be read in part only, so the row has no number; the lane learns it |

` + "`5000/h`" + ` is the vendor's number, in any window of that length, and ` + "`2/s burst 40`" + ` is a bucket. The preset's limit is the one that stays below it, also if calls
differ on their way: see [which numbers to set](limits.md).

| vendor | what is counted | number | the preset's limit | source | day | method | note |
| --- | --- | --- | --- | --- | --- | --- | --- |
`)
	for _, p := range vendors.All() {
		for _, n := range p.Numbers {
			limit := ""
			if l := n.Limit(); l != (throttle.Limit{}) {
				limit = "`" + l.String() + "`"
			} else if n.Most > 0 {
				limit = fmt.Sprintf("`InFlight.Max: %d`", n.Most)
			}
			number := cmp.Or(strings.TrimPrefix("`"+n.String()+"`", "`no number`"), "none")
			fmt.Fprintf(&b, "| %s | %s | %s | %s | <%s> | %s | %s | %s |\n", p.Name, n.Counts, number, limit, n.Source, n.Read, n.Method, n.Note)
		}
	}
	b.WriteString("\n| vendor | what shares a lane | what is repeated, beside GET, PUT and DELETE |\n| --- | --- | --- |\n")
	for _, p := range vendors.All() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.Name, p.Keys, p.Repeats)
	}
	return b.String()
}
