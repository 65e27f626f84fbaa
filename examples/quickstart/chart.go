package main

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The fills differ in lightness too, for readers who do not tell red from blue.
var (
	acceptedColor = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}
	refusedColor  = color.RGBA{R: 0xf4, G: 0x8c, B: 0x5a, A: 0xff}
	limitColor    = color.RGBA{R: 0x10, G: 0x10, B: 0x10, A: 0xff}
	gridColor     = color.RGBA{R: 0xe2, G: 0xe2, B: 0xe2, A: 0xff}
	pictureFont   = font.Font{Typeface: "Liberation", Variant: "Sans"}
)

const (
	pictureWidth = 9 * vg.Inch
	panelHeight  = 2.6 * vg.Inch
	legendHeight = 0.35 * vg.Inch
)

// writePictures draws the runs into path.svg and path.png.
func writePictures(path string, results []result) error {
	panels, entries := drawPanels(results)
	height := legendHeight + panelHeight*vg.Length(len(results))

	svg := vgsvg.New(pictureWidth, height)
	paint(draw.New(svg), panels, entries)
	var text bytes.Buffer
	if _, err := svg.WriteTo(&text); err != nil {
		return err
	}
	if err := os.WriteFile(path+".svg", withFallbackFonts(text.Bytes()), 0o644); err != nil {
		return err
	}

	png := vgimg.NewWith(vgimg.UseWH(pictureWidth, height), vgimg.UseDPI(144))
	paint(draw.New(png), panels, entries)
	var image bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: png}).WriteTo(&image); err != nil {
		return err
	}
	return os.WriteFile(path+".png", image.Bytes(), 0o644)
}

// withFallbackFonts names fonts of the same widths for readers who lack ours.
func withFallbackFonts(svg []byte) []byte {
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arimo,Helvetica,Arial,sans-serif;"))
}

// paint puts the legend on top and the panels one above the other.
func paint(c draw.Canvas, panels []*plot.Plot, entries []entry) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	paintLegend(draw.Crop(c, 0, 0, c.Max.Y-c.Min.Y-legendHeight, 0), entries)
	column := make([][]*plot.Plot, len(panels))
	for i, p := range panels {
		column[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadY: 14, PadTop: 4, PadBottom: 6, PadLeft: 8, PadRight: 14}
	for i, row := range plot.Align(column, tiles, draw.Crop(c, 0, 0, 0, -legendHeight)) {
		panels[i].Draw(row[0])
	}
}

// drawPanels returns a panel for each run, all on the same axes, and the legend
// that they share.
func drawPanels(results []result) ([]*plot.Plot, []entry) {
	width := binWidth(results)
	panels := make([]*plot.Plot, len(results))
	right, top := width.Seconds(), perSecond(results[0].limit)*width.Seconds()
	for _, r := range results {
		right = max(right, (r.span() + width).Seconds())
		top = max(top, highest(r, width))
	}
	var entries []entry
	for i, r := range results {
		panels[i], entries = drawPanel(r, width, right)
		panels[i].X.Min, panels[i].X.Max = 0, right
		panels[i].Y.Min, panels[i].Y.Max = 0, top*1.05
	}
	return panels, entries
}

func drawPanel(r result, width time.Duration, right float64) (*plot.Plot, []entry) {
	p := plot.New()
	style(p)
	p.Title.Text = fmt.Sprintf("%s: %d of %d calls answered in %s; %d requests, %d of them refused",
		r.title, r.answered(), r.asked, seconds(r.wall), len(r.arrivals), r.refused())
	p.X.Label.Text = "seconds"
	p.Y.Label.Text = fmt.Sprintf("requests per %s\n%s", spaced(width), seenBy(r))
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = gridColor, gridColor
	all := bars(r, width, refusedColor, func(arrival) bool { return true })
	accepted := bars(r, width, acceptedColor, func(a arrival) bool { return !a.refused })
	line := limitLine(r, width, right)
	p.Add(grid, all, accepted, line) // what stands out above the accepted ones was refused
	return p, []entry{
		{acceptedName(r), accepted},
		{"refused (429)", all},
		{limitName(r, width), line},
	}
}

func style(p *plot.Plot) {
	for f, size := range map[*font.Font]vg.Length{
		&p.Title.TextStyle.Font:   12,
		&p.X.Label.TextStyle.Font: 10,
		&p.Y.Label.TextStyle.Font: 10,
		&p.X.Tick.Label.Font:      10,
		&p.Y.Tick.Label.Font:      10,
	} {
		*f = pictureFont
		f.Size = size
	}
	p.Title.Padding = 6
	p.X.Padding, p.Y.Padding = 0, 0
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks(15), ticks(6)
}

func seenBy(r result) string {
	if r.remote {
		return "as sent by this client"
	}
	return "as seen by the vendor"
}
