package main

import (
	"image/color"
	"net/http"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/weirgo/weir/examples/internal/chart"
)

var (
	blue   = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
	red    = color.RGBA{R: 0xc8, G: 0x1e, B: 0x1e, A: 0xff}
	paused = color.RGBA{R: 0xf4, G: 0xd6, B: 0xd6, A: 0xff}
)

// picture draws a row for each host, and in it a bar for each page from its request to its
// answer. Every other page is drawn a little lower, so that two in flight can be seen.
func picture(hosts []host, length time.Duration) chart.Picture {
	p := chart.NewPanel("pages of six hosts, through one client", "")
	fetch, refusal, pausing := bar(0, 0, 0, blue), bar(0, 0, 0, red), bar(0, 0, 0, paused)
	names := make([]string, len(hosts))
	for i, h := range hosts {
		row := float64(len(hosts) - 1 - i) // the first host is on top
		names[len(hosts)-1-i] = h.name
		for n, a := range h.vendor.Arrivals() {
			end := a.Answered
			if a.Status == 0 || end > length {
				end = length
			}
			y := row + 0.12 - 0.24*float64(n%2)
			if a.Status == http.StatusServiceUnavailable {
				p.Add(bar(end, min(end+pause, length), row, paused), bar(a.At, end+50*time.Millisecond, y, red))
				continue
			}
			p.Add(bar(a.At, end, y, blue))
		}
	}
	p.NominalY(names...)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, length.Seconds(), -0.6, float64(len(hosts))-0.4
	return chart.Picture{Panels: []*plot.Plot{p}, PanelHeight: 3.6 * vg.Inch, Legend: []chart.Entry{
		{Name: "a page, from request to answer", Thumb: fetch},
		{Name: "503 with Retry-After: 4", Thumb: refusal},
		{Name: "the time that it asks for", Thumb: pausing},
	}}
}

// bar returns a bar from one instant to another at the height y.
func bar(from, to time.Duration, y float64, fill color.Color) *plotter.Line {
	line := &plotter.Line{XYs: plotter.XYs{{X: from.Seconds(), Y: y}, {X: to.Seconds(), Y: y}}}
	line.Color, line.Width = fill, vg.Points(7)
	if fill == paused {
		line.Width = vg.Points(16)
	}
	return line
}
