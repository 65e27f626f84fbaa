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

// bar is how long one bar of the picture takes.
const bar = 200 * time.Millisecond

var (
	blue     = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
	gray     = color.RGBA{R: 0xa8, G: 0xa8, B: 0xa8, A: 0xff}
	rejected = draw.GlyphStyle{Color: color.RGBA{R: 0xc8, G: 0x1e, B: 0x1e, A: 0xff}, Radius: vg.Points(4), Shape: draw.RingGlyph{}}
)

// A length is the line's length at an instant.
type length struct {
	at      time.Duration
	waiting int
}

// picture draws, above, the length of the line; below, how many writes of each kind ended in each
// part of the time.
func picture(w *writer, lengths []length) chart.Picture {
	right := time.Since(w.began).Truncate(bar)
	inLine := &plotter.Line{}
	inLine.Color, inLine.Width = blue, vg.Points(1.5)
	for _, l := range lengths {
		inLine.XYs = append(inLine.XYs, plotter.XY{X: l.at.Seconds(), Y: float64(l.waiting)})
	}
	refused := &plotter.Scatter{GlyphStyle: rejected}
	for _, o := range w.outcome {
		for _, at := range o.rejected {
			refused.XYs = append(refused.XYs, plotter.XY{X: at.Seconds(), Y: float64(line.MaxWaiting)})
		}
	}
	above := chart.NewPanel(fmt.Sprintf("the line: %d writes rejected", len(refused.XYs)), "writes in line")
	bound := chart.LimitLine(float64(line.MaxWaiting), right.Seconds())
	above.Add(inLine, bound, refused)

	orders, all := make([]int, right/bar), make([]int, right/bar)
	for k, o := range w.outcome {
		for _, at := range o.written {
			if i := int(at / bar); i < len(all) {
				all[i]++
				if k == order {
					orders[i]++
				}
			}
		}
	}
	below := chart.NewPanel("the store", fmt.Sprintf("writes per %s", chart.Spaced(bar)))
	allBars, orderBars := chart.Bars(all, bar, gray), chart.Bars(orders, bar, blue)
	below.Add(allBars, orderBars, chart.LimitLine(limit.PerSecond()*bar.Seconds(), right.Seconds()))

	above.X.Min, above.X.Max, above.Y.Min, above.Y.Max = 0, right.Seconds(), 0, 1.2*float64(line.MaxWaiting)
	below.X.Min, below.X.Max, below.Y.Min, below.Y.Max = 0, right.Seconds(), 0, 2*limit.PerSecond()*bar.Seconds()
	return chart.Picture{Panels: []*plot.Plot{above, below}, PanelHeight: 2.4 * vg.Inch, Legend: []chart.Entry{
		{Name: "orders", Thumb: orderBars}, {Name: "rows of the report", Thumb: allBars},
		{Name: "rejected", Thumb: refused}, {Name: "the bounds", Thumb: bound},
	}}
}
