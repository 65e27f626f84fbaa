package main

import (
	"fmt"
	"image/color"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/weirgo/weir/examples/internal/chart"
)

// The fills differ in lightness too, for readers who cannot distinguish red from blue.
var (
	acceptedColor = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
	refusedColor  = color.RGBA{R: 0xf4, G: 0x8c, B: 0x5a, A: 0xff}
)

// writePictures draws the runs into path.svg and path.png.
func writePictures(path string, results []result) error {
	panels, entries := drawPanels(results)
	return chart.Picture{Panels: panels, PanelHeight: 2.4 * vg.Inch, Legend: entries}.Write(path)
}

// drawPanels returns a panel for each run, all on the same axes, and the legend
// that they share.
func drawPanels(results []result) ([]*plot.Plot, []chart.Entry) {
	width := binWidth(results)
	panels := make([]*plot.Plot, len(results))
	right, top := width.Seconds(), results[0].limit.PerSecond()*width.Seconds()
	for _, r := range results {
		right = max(right, (r.span() + width).Seconds())
		top = max(top, highest(r, width))
	}
	var entries []chart.Entry
	for i, r := range results {
		panels[i], entries = drawPanel(r, width, right)
		panels[i].X.Min, panels[i].X.Max = 0, right
		panels[i].Y.Min, panels[i].Y.Max = 0, top*1.05
	}
	return panels, entries
}

func drawPanel(r result, width time.Duration, right float64) (*plot.Plot, []chart.Entry) {
	p := chart.NewPanel(
		fmt.Sprintf("%s: %d of %d calls answered in %s; %d requests, %d of them refused",
			r.title, r.answered(), r.asked, seconds(r.wall), len(r.arrivals), r.refused()),
		fmt.Sprintf("requests per %s\n%s", chart.Spaced(width), seenBy(r)))
	all := bars(r, width, refusedColor, func(arrival) bool { return true })
	accepted := bars(r, width, acceptedColor, func(a arrival) bool { return !a.refused })
	line := chart.LimitLine(r.limit.PerSecond()*width.Seconds(), right) // as high as bars that use the rate to the last permit
	p.Add(all, accepted, line)                                          // the part above the accepted ones was refused
	return p, []chart.Entry{
		{Name: acceptedName(r), Thumb: accepted},
		{Name: "refused (429)", Thumb: all},
		{Name: limitName(r, width), Thumb: line},
	}
}

func seenBy(r result) string {
	if r.remote {
		return "as sent by this client"
	}
	return "as seen by the vendor"
}
