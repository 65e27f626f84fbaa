package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weirgo/weir/examples/internal/chart"
)

// The two differ in shape too, for readers who do not tell their colours.
var (
	sentStyle    = draw.GlyphStyle{Color: color.RGBA{R: 0x5b, G: 0x8f, B: 0xc9, A: 0xff}, Radius: vg.Points(4), Shape: draw.CircleGlyph{}}
	waitingStyle = draw.GlyphStyle{Color: color.RGBA{R: 0xc8, G: 0x1e, B: 0x1e, A: 0xff}, Radius: vg.Points(4), Shape: draw.RingGlyph{}}
)

// writePicture draws the waits of the passwords into path.svg and path.png, a panel
// for each line.
func writePicture(path string, lines []*line) error {
	p := chart.Picture{PanelHeight: 2.6 * vg.Inch}
	for _, l := range lines {
		panel, entries := l.draw()
		p.Panels, p.Legend = append(p.Panels, panel), entries
	}
	return p.Write(path)
}

func (l *line) draw() (*plot.Plot, []chart.Entry) {
	sent, waiting := l.marks()
	p := chart.NewPanel(fmt.Sprintf("%s: %d of %d passwords sent", l.name, len(sent.XYs), len(l.passwords)), "wait of a password, s")
	p.Add(sent, waiting)
	right := max(l.length.Seconds(), 1)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, right, 0, right
	return p, []chart.Entry{
		{Name: "sent", Thumb: sent},
		{Name: "still in line at the end", Thumb: waiting},
	}
}

// marks returns a mark for each password, where it came and as high as it waited.
func (l *line) marks() (sent, waiting *plotter.Scatter) {
	sent, waiting = &plotter.Scatter{GlyphStyle: sentStyle}, &plotter.Scatter{GlyphStyle: waitingStyle}
	for _, m := range l.passwords {
		of := waiting
		if m.sent {
			of = sent
		}
		of.XYs = append(of.XYs, plotter.XY{X: m.came.Seconds(), Y: m.waited.Seconds()})
	}
	return sent, waiting
}
