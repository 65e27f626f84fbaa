package main

import (
	"fmt"
	"image/color"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/weirgo/weir/examples/internal/chart"
)

// The fills of the replicas, from below, starting again after the last; neighbours also differ in
// lightness.
var replicaColors = []color.RGBA{
	{R: 0x33, G: 0x22, B: 0x88, A: 0xff},
	{R: 0x88, G: 0xcc, B: 0xee, A: 0xff},
	{R: 0x11, G: 0x77, B: 0x33, A: 0xff},
	{R: 0xdd, G: 0xcc, B: 0x77, A: 0xff},
	{R: 0x44, G: 0x77, B: 0xaa, A: 0xff},
	{R: 0xbb, G: 0xdd, B: 0xaa, A: 0xff},
	{R: 0x77, G: 0x44, B: 0x88, A: 0xff},
	{R: 0xcc, G: 0xbb, B: 0xcc, A: 0xff},
}

var refusedColor = color.RGBA{R: 0xe6, G: 0x55, B: 0x1c, A: 0xff}

// writePicture draws the run into path.svg and path.png.
func writePicture(path string, r result) error {
	panel, entries := drawPanel(r)
	return chart.Picture{Panels: []*plot.Plot{panel}, PanelHeight: 4 * vg.Inch, Legend: entries}.Write(path)
}

func drawPanel(r result) (*plot.Plot, []chart.Entry) {
	width := binWidth(r)
	right := max(r.length, width).Seconds()
	atLimit := r.room.limit.PerSecond() * width.Seconds()
	line := chart.LimitLine(atLimit, right)
	bars, highest := stack(r, width)
	marks := newMarks(r.happened, right)

	p := chart.NewPanel(
		fmt.Sprintf("%d requests in %.1f s, %d of them refused; in any second %d at most, and %d by the bound",
			len(r.arrivals), r.length.Seconds(), r.refused(), r.arrivals.MaxIn(time.Second), r.room.inSecond()),
		fmt.Sprintf("requests per %s\nas seen by the vendor", chart.Spaced(width)))
	p.Add(marks.bands())
	for _, b := range bars {
		p.Add(b)
	}
	p.Add(line, marks)
	p.X.Min, p.X.Max = 0, right
	p.Y.Min, p.Y.Max = 0, max(highest, atLimit)*marks.headroom()
	return p, []chart.Entry{
		{Name: fmt.Sprintf("replicas 1 to %d, from below", len(r.rows)), Thumb: stripes(len(r.rows))},
		{Name: "refused (429)", Thumb: bars[0]},
		{Name: fmt.Sprintf("the limit: %s, and a burst of %d", rateOf(r.room.limit), burstOf(r.room.limit)), Thumb: line},
	}
}
