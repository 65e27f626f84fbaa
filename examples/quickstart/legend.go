package main

import (
	"fmt"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// An entry of the legend.
type entry struct {
	name  string
	thumb plot.Thumbnailer
}

// paintLegend puts the entries side by side, where they hide nothing.
func paintLegend(c draw.Canvas, entries []entry) {
	x := vg.Length(48)
	for _, e := range entries {
		l := plot.NewLegend()
		l.TextStyle.Font = pictureFont
		l.TextStyle.Font.Size = 11
		l.Left, l.Top, l.XOffs, l.YOffs = true, true, x, -6
		l.Add(e.name, e.thumb)
		l.Draw(c)
		x += l.ThumbnailWidth + l.TextStyle.Width(" "+e.name) + 24
	}
}

func acceptedName(r result) string {
	if r.remote {
		return "sent, not refused"
	}
	return "accepted"
}

func limitName(r result, width time.Duration) string {
	whose := "the vendor's limit"
	if r.remote {
		whose = "Weir's limit"
	}
	rate := perSecond(r.limit)
	return fmt.Sprintf("%s: %.3g/s, which is %.3g per %s, and a burst of %d",
		whose, rate, rate*width.Seconds(), spaced(width), r.limit.Burst)
}

// spaced writes a bar's width: "100 ms", "10 s".
func spaced(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
