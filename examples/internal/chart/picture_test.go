package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// Titles and labels of axes are anchored in their middle, which is the panel's: a wider font does
// not cut them.
func TestTextIsAnchoredInItsMiddle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pic")
	panel := NewPanel("a & b: a title, which is long", "calls per second\nas seen")
	panel.X.Max, panel.Y.Max = 10, 10
	if err := (Picture{Panels: []*plot.Plot{panel}, PanelHeight: 3 * vg.Inch}).Write(path); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(path + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	for text, middle := range map[string]float64{"a &amp; b: a title, which is long": 334, "seconds": 334, "calls per second": 112, "as seen": 112} {
		found := regexp.MustCompile(`<text text-anchor="middle" x="([^"]*)"[^<>]*>` + text + `</text>`).FindSubmatch(svg)
		if found == nil {
			t.Errorf("%q is not anchored in its middle", text)
			continue
		}
		if x, err := strconv.ParseFloat(string(found[1]), 64); err != nil || x < middle-25 || x > middle+25 {
			t.Errorf("the middle of %q is at %s, want about %v", text, found[1], middle)
		}
	}
}
