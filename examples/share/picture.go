package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weirgo/weir/examples/internal/chart"
)

// The fills differ in lightness too, for readers who cannot distinguish red from blue.
var (
	syncColor    = color.RGBA{R: 0x5b, G: 0x8f, B: 0xc9, A: 0xff}
	consoleColor = color.RGBA{R: 0xdd, G: 0xcc, B: 0x77, A: 0xff}
	refusedColor = color.RGBA{R: 0xc8, G: 0x1e, B: 0x1e, A: 0xff}
)

// picture draws how much of each window was used, a bar a window and a panel an account. The part
// of the console stands on that of the sync.
func picture(accounts []*account, windows int) chart.Picture {
	p := chart.Picture{PanelHeight: 2.1 * vg.Inch}
	right := float64(windows) * window.Seconds()
	for _, a := range accounts {
		bySyncs, all := make([]int, windows), make([]int, windows)
		marks := &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: refusedColor, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}}
		for _, r := range a.vendor.Arrivals() {
			at := a.since(r)
			i := int(at / window)
			switch {
			case i >= len(all):
			case r.Granted && r.ID == bySync:
				bySyncs[i]++
				all[i]++
			case r.Granted:
				all[i]++
			case r.ID == byConsole:
				marks.XYs = append(marks.XYs, plotter.XY{X: at.Seconds(), Y: quota * 1.12})
			}
		}
		panel := chart.NewPanel(fmt.Sprintf("%s: %d calls of the console refused", a.name, len(marks.XYs)), "calls per window\nas seen by the vendor")
		upper, lower, line := chart.Bars(all, window, consoleColor), chart.Bars(bySyncs, window, syncColor), chart.LimitLine(quota, right)
		panel.Add(upper, lower, line, marks)
		panel.X.Min, panel.X.Max, panel.Y.Min, panel.Y.Max = 0, right, 0, quota*1.25
		p.Panels = append(p.Panels, panel)
		p.Legend = []chart.Entry{
			{Name: "the sync", Thumb: lower}, {Name: "the console", Thumb: upper},
			{Name: "the console's refused calls", Thumb: marks}, {Name: "the quota", Thumb: line},
		}
	}
	return p
}
