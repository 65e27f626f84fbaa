package main

import (
	"image/color"
	"os"
	"path/filepath"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/weirgo/weir/throttle"
)

const (
	width  = 10 * vg.Inch
	height = 6.4 * vg.Inch
	bins   = 240 // of the time axis
)

// colors are those of the candidates: Okabe and Ito's, which everyone can tell apart.
var colors = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255},
}

var grey = color.RGBA{190, 190, 190, 255}

// checkPicture returns why no picture can be drawn at a path.
func checkPicture(path string) error {
	switch filepath.Ext(path) {
	case ".svg", ".png":
		return nil
	case "":
		if path == "" {
			return nil
		}
	}
	return usagef("-o %q ends neither in .svg nor in .png", path)
}

// draw draws, above, how many calls arrived and departed in each part of the time; below, how long
// the arrivals of that part waited.
func (r *replayed) draw(path string) error {
	calls, waits, err := r.panels()
	if err != nil {
		return err
	}
	canvas, write := canvasOf(path)
	halves := plot.Align([][]*plot.Plot{{calls}, {waits}}, draw.Tiles{Rows: 2, Cols: 1, PadTop: 6, PadBottom: 6, PadLeft: 6, PadRight: 14, PadY: 10}, canvas)
	calls.Draw(halves[0][0])
	waits.Draw(halves[1][0])
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// canvasOf returns a canvas, and the function that writes it.
func canvasOf(path string) (draw.Canvas, func(*os.File) error) {
	if filepath.Ext(path) == ".svg" {
		svg := vgsvg.New(width, height)
		return draw.New(svg), func(f *os.File) error { _, err := svg.WriteTo(f); return err }
	}
	png := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))
	return draw.New(png), func(f *os.File) error { _, err := (vgimg.PngCanvas{Canvas: png}).WriteTo(f); return err }
}

// panels returns the two panels.
func (r *replayed) panels() (calls, waits *plot.Plot, err error) {
	start, end := r.arrivals[0], r.arrivals[len(r.arrivals)-1]
	for i := range r.candidates {
		d := r.candidates[i].patient.departures
		end = max(end, d[len(d)-1])
	}
	axis := timeAxis(start, end)
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	calls, waits = plot.New(), plot.New()
	for _, p := range []*plot.Plot{calls, waits} {
		p.X.Label.Text = "time since the first call, in " + axis.unitName
		p.Y.Min, p.X.Min, p.X.Max = 0, 0, axis.of(end)
		p.Legend.Top, p.Legend.Padding = true, 2
		p.Add(plotter.NewGrid())
	}
	calls.Y.Label.Text, waits.Y.Label.Text = "calls per second", "longest wait, in s"
	came, err := plotter.NewLine(axis.steps(axis.rates(r.arrivals)))
	if err != nil {
		return nil, nil, err
	}
	came.FillColor, came.Color = grey, grey
	calls.Add(came)
	calls.Legend.Add("came", came)
	for i := range r.candidates {
		c := &r.candidates[i]
		left, err := plotter.NewLine(axis.steps(axis.rates(c.patient.departures)))
		if err != nil {
			return nil, nil, err
		}
		waited, err := plotter.NewLine(axis.steps(axis.longest(&c.patient)))
		if err != nil {
			return nil, nil, err
		}
		left.Color = colors[i%len(colors)]
		waited.Color, left.Width, waited.Width = left.Color, 1.2, 1.2
		calls.Add(left)
		calls.Legend.Add("left: "+c.text, left)
		waits.Add(waited)
		waits.Legend.Add(c.text, waited)
	}
	for _, p := range []*plot.Plot{calls, waits} { // the legend hides nothing
		p.Y.Max *= 1.1 + 0.09*float64(len(r.candidates))
	}
	return calls, waits, nil
}

// An axis divides the time into bins.
type axis struct {
	start    throttle.Instant
	bin      time.Duration
	unit     time.Duration
	unitName string
}

func timeAxis(start, end throttle.Instant) axis {
	a := axis{start: start, bin: max(end.Sub(start)/bins+1, time.Millisecond), unit: time.Second, unitName: "s"}
	switch length := end.Sub(start); {
	case length > 72*time.Hour:
		a.unit, a.unitName = 24*time.Hour, "days"
	case length > 3*time.Hour:
		a.unit, a.unitName = time.Hour, "h"
	case length > 10*time.Minute:
		a.unit, a.unitName = time.Minute, "min"
	}
	return a
}

func (a axis) of(i throttle.Instant) float64 { return float64(i.Sub(a.start)) / float64(a.unit) }

// rates returns how many instants there are in each bin, per second.
func (a axis) rates(instants []throttle.Instant) []float64 {
	n := make([]float64, bins+1)
	for _, i := range instants {
		n[min(int(i.Sub(a.start)/a.bin), bins)] += 1 / a.bin.Seconds()
	}
	return n
}

// longest returns the longest wait, in seconds, of the calls that came in each bin.
func (a axis) longest(o *outcome) []float64 {
	n := make([]float64, bins+1)
	for k, came := range o.arrived {
		i := min(int(came.Sub(a.start)/a.bin), bins)
		n[i] = max(n[i], o.waits[k].Seconds())
	}
	return n
}

// steps returns a line that is level in each bin.
func (a axis) steps(values []float64) plotter.XYs {
	width := float64(a.bin) / float64(a.unit)
	line := make(plotter.XYs, 0, 2*len(values)+2)
	line = append(line, plotter.XY{})
	for i, v := range values {
		line = append(line, plotter.XY{X: float64(i) * width, Y: v}, plotter.XY{X: float64(i+1) * width, Y: v})
	}
	return append(line, plotter.XY{X: float64(len(values)) * width})
}
