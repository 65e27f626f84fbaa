// Package chart draws the pictures of the examples: panels one above the other
// on white, a legend on top that hides nothing, as SVG and as PNG.
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"os"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Font is the font of all text.
var Font = font.Font{Typeface: "Liberation", Variant: "Sans"}

const (
	width        = 9 * vg.Inch
	legendHeight = 0.35 * vg.Inch
)

// A Picture is panels under one legend.
type Picture struct {
	Panels      []*plot.Plot // from top to bottom; their left edges are aligned
	PanelHeight vg.Length
	Legend      []Entry // from left to right
}

// Write draws the picture into path.svg and path.png.
func (p Picture) Write(path string) error {
	svg, err := p.SVG()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".svg", svg, 0o644); err != nil {
		return err
	}
	png := vgimg.NewWith(vgimg.UseWH(width, p.height()), vgimg.UseDPI(144))
	p.paint(draw.New(png))
	var image bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: png}).WriteTo(&image); err != nil {
		return err
	}
	return os.WriteFile(path+".png", image.Bytes(), 0o644)
}

// SVG draws the picture.
func (p Picture) SVG() ([]byte, error) {
	svg := vgsvg.New(width, p.height())
	p.paint(draw.New(svg))
	var drawn bytes.Buffer
	if _, err := svg.WriteTo(&drawn); err != nil {
		return nil, err
	}
	return withFallbackFonts(p.centred(drawn.Bytes())), nil
}

func (p Picture) height() vg.Length {
	return legendHeight + p.PanelHeight*vg.Length(len(p.Panels))
}

// centred anchors titles and the labels of axes in their middle. With another font, which
// may be wider, they stay there, and are not cut.
func (p Picture) centred(svg []byte) []byte {
	for _, panel := range p.Panels {
		for label, style := range map[string]text.Style{
			panel.Title.Text: panel.Title.TextStyle, panel.X.Label.Text: panel.X.Label.TextStyle, panel.Y.Label.Text: panel.Y.Label.TextStyle,
		} {
			for line := range strings.Lines(label) {
				svg = centre(svg, strings.TrimSuffix(line, "\n"), style)
			}
		}
	}
	return svg
}

// centre moves the anchor of a line of text from its left end to its middle.
func centre(svg []byte, line string, style text.Style) []byte {
	var escaped bytes.Buffer
	_ = xml.EscapeText(&escaped, []byte(line)) // a buffer takes all
	element := regexp.MustCompile(`<text x="([^"]*)"([^<>]*>` + regexp.QuoteMeta(escaped.String()) + `</text>)`)
	return element.ReplaceAllFunc(svg, func(found []byte) []byte {
		parts := element.FindSubmatch(found)
		left, err := strconv.ParseFloat(string(parts[1]), 64)
		if err != nil {
			return found
		}
		return fmt.Appendf(nil, `<text text-anchor="middle" x="%.5g"%s`, left+style.Width(line).Points()/2, parts[2])
	})
}

// withFallbackFonts names fonts of the same widths for readers who lack ours.
func withFallbackFonts(svg []byte) []byte {
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arimo,Helvetica,Arial,sans-serif;"))
}

func (p Picture) paint(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Path())
	paintLegend(draw.Crop(c, 0, 0, c.Max.Y-c.Min.Y-legendHeight, 0), p.Legend)
	column := make([][]*plot.Plot, len(p.Panels))
	for i, panel := range p.Panels {
		column[i] = []*plot.Plot{panel}
	}
	tiles := draw.Tiles{Rows: len(p.Panels), Cols: 1, PadY: 14, PadTop: 4, PadBottom: 6, PadLeft: 8, PadRight: 14}
	for i, row := range plot.Align(column, tiles, draw.Crop(c, 0, 0, 0, -legendHeight)) {
		p.Panels[i].Draw(row[0])
	}
}
