package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

var (
	limitColor = color.RGBA{R: 0x10, G: 0x10, B: 0x10, A: 0xff}
	gridColor  = color.RGBA{R: 0xe2, G: 0xe2, B: 0xe2, A: 0xff}
)

// NewPanel returns an empty panel of seconds, with a grid.
func NewPanel(title, yLabel string) *plot.Plot {
	p := plot.New()
	for f, size := range map[*font.Font]vg.Length{
		&p.Title.TextStyle.Font:   12,
		&p.X.Label.TextStyle.Font: 10,
		&p.Y.Label.TextStyle.Font: 10,
		&p.X.Tick.Label.Font:      10,
		&p.Y.Tick.Label.Font:      10,
	} {
		*f = Font
		f.Size = size
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "seconds", yLabel
	p.Title.Padding = 6
	p.X.Padding, p.Y.Padding = 0, 0
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks(15), ticks(6)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = gridColor, gridColor
	p.Add(grid)
	return p
}

// LimitLine returns a dashed line at the height y, from 0 to right.
func LimitLine(y, right float64) *plotter.Line {
	return LimitSteps(plotter.XYs{{X: 0, Y: y}, {X: right, Y: y}})
}

// LimitSteps returns a dashed line through the points.
func LimitSteps(points plotter.XYs) *plotter.Line {
	line := &plotter.Line{XYs: points}
	line.Color, line.Width, line.Dashes = limitColor, vg.Points(1.5), []vg.Length{vg.Points(6), vg.Points(3)}
	return line
}
