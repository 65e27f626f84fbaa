package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// An Entry is one entry of the legend.
type Entry struct {
	Name  string
	Thumb plot.Thumbnailer
}

// paintLegend puts the entries side by side, where they hide nothing.
func paintLegend(c draw.Canvas, entries []Entry) {
	x := vg.Length(48)
	for _, e := range entries {
		l := plot.NewLegend()
		l.TextStyle.Font = Font
		l.TextStyle.Font.Size = 11
		l.Left, l.Top, l.XOffs, l.YOffs = true, true, x, -6
		l.Add(e.Name, e.Thumb)
		l.Draw(c)
		x += l.ThumbnailWidth + l.TextStyle.Width(" "+e.Name) + 24
	}
}
