package main

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weirgo/weir/examples/internal/chart"
)

var (
	markColor = color.RGBA{R: 0x50, G: 0x50, B: 0x50, A: 0xff}
	bandColor = color.RGBA{R: 0xea, G: 0xea, B: 0xea, A: 0xff}
)

// The place of labels.
const (
	plotWidth = 8.2 * vg.Inch // about
	rowHeight = vg.Length(12)
	labelGap  = vg.Length(3)
	mostRows  = 4
)

// Marks are the faults: a plotter of a line at the beginning of each span, with a label above all
// bars.
type marks struct {
	spans []span
	rows  []int // of the labels, from the top
	style text.Style
}

// newMarks gives each label the first row in which it overlaps no other.
func newMarks(spans []span, right float64) *marks {
	m := &marks{spans: spans, style: text.Style{
		Color:   markColor,
		Font:    chart.Font,
		YAlign:  draw.YTop,
		Handler: plot.DefaultTextHandler,
	}}
	m.style.Font.Size = 9
	var ends [mostRows]vg.Length
	for _, s := range spans {
		from := vg.Length(s.from.Seconds()/right) * plotWidth
		row := 0
		for row < mostRows-1 && ends[row] > from {
			row++
		}
		ends[row] = from + m.style.Width(s.label()) + 3*labelGap
		m.rows = append(m.rows, row)
	}
	return m
}

// headroom returns by how much the axis must be longer than the highest bar.
func (m *marks) headroom() float64 {
	rows := 0
	for _, row := range m.rows {
		rows = max(rows, row+1)
	}
	return 1.05 + 0.07*float64(rows)
}

// Plot implements plot.Plotter.
func (m *marks) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	style := draw.LineStyle{Color: markColor, Width: vg.Points(0.7)}
	for i, s := range m.spans {
		at := x(s.from.Seconds())
		c.StrokeLine2(style, at, c.Min.Y, at, c.Max.Y)
		c.FillText(m.style, vg.Point{X: at + labelGap, Y: c.Max.Y - vg.Length(m.rows[i])*rowHeight}, s.label())
	}
}

// bands returns a plotter of the spans' time, drawn behind everything.
func (m *marks) bands() plot.Plotter { return bands(m.spans) }

type bands []span

// Plot implements plot.Plotter.
func (b bands) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, s := range b {
		from, until := x(s.from.Seconds()), x(s.until.Seconds())
		c.FillPolygon(bandColor, []vg.Point{
			{X: from, Y: c.Min.Y}, {X: from, Y: c.Max.Y}, {X: until, Y: c.Max.Y}, {X: until, Y: c.Min.Y},
		})
	}
}
