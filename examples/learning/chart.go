package main

import (
	"fmt"
	"image/color"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weirgo/weir/examples/internal/chart"
)

// The fills differ in lightness too, for readers who cannot distinguish red from blue.
var (
	servedColor  = color.RGBA{R: 0x5b, G: 0x8f, B: 0xc9, A: 0xff}
	refusedColor = color.RGBA{R: 0xc8, G: 0x1e, B: 0x1e, A: 0xff}
)

// barWidth is the time of a bar.
const barWidth = 500 * time.Millisecond

// writePicture draws the run into path.svg and path.png.
func writePicture(path string, r result) error {
	panel, entries := drawPanel(r)
	return chart.Picture{Panels: []*plot.Plot{panel}, PanelHeight: 3.6 * vg.Inch, Legend: entries}.Write(path)
}

func drawPanel(r result) (*plot.Plot, []chart.Entry) {
	served, refused := r.between(0, r.length)
	counts := r.counts()
	line := r.limitLine()
	top := line.XYs[len(line.XYs)-1].Y
	for _, n := range counts {
		top = max(top, float64(n))
	}
	bars, marks := chart.Bars(counts, barWidth, servedColor), r.refusals(top*1.08)

	p := chart.NewPanel(
		fmt.Sprintf("Weir, no limit configured: %d calls served in %.1f s, %d refused", served, r.length.Seconds(), refused),
		fmt.Sprintf("calls served per %s\nas seen by the vendor", chart.Spaced(barWidth)))
	p.Add(bars, line, marks)
	p.X.Min, p.X.Max = 0, max(r.length, barWidth).Seconds()
	p.Y.Min, p.Y.Max = 0, top*1.15
	return p, []chart.Entry{
		{Name: "served", Thumb: bars},
		{Name: "refused (429), a mark each", Thumb: marks},
		{Name: "the vendor's limit, not reported", Thumb: line},
	}
}

// counts returns the calls served in the time of each bar.
func (r *result) counts() []int {
	counts := make([]int, int(r.length/barWidth)+1)
	for _, a := range r.arrivals.Granted() {
		counts[a.At/barWidth]++
	}
	return counts
}

// limitLine is as high as bars that use the rate to the last permit.
func (r *result) limitLine() *plotter.Line {
	var points plotter.XYs
	for i, p := range r.phases {
		y := p.limit.PerSecond() * barWidth.Seconds()
		points = append(points, plotter.XY{X: p.from.Seconds(), Y: y}, plotter.XY{X: r.until(i).Seconds(), Y: y})
	}
	return chart.LimitSteps(points)
}

// refusals returns a mark for each refused call, in a row at the height y.
func (r *result) refusals(y float64) *plotter.Scatter {
	marks := &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: refusedColor, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}}
	for _, a := range r.arrivals {
		if !a.Granted {
			marks.XYs = append(marks.XYs, plotter.XY{X: a.At.Seconds(), Y: y})
		}
	}
	return marks
}
