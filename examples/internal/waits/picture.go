package waits

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weirgo/weir/examples/internal/chart"
)

// The marks differ in shape or size too, for readers who cannot distinguish the colours.
var (
	bulkStyle    = draw.GlyphStyle{Color: color.RGBA{R: 0xa8, G: 0xa8, B: 0xa8, A: 0xff}, Radius: vg.Points(2), Shape: draw.BoxGlyph{}}
	sentStyle    = draw.GlyphStyle{Color: color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}, Radius: vg.Points(4), Shape: draw.CircleGlyph{}}
	waitingStyle = draw.GlyphStyle{Color: color.RGBA{R: 0xc8, G: 0x1e, B: 0x1e, A: 0xff}, Radius: vg.Points(4), Shape: draw.RingGlyph{}}
)

// Picture returns a picture of each message's wait, a panel for each line, all on the same
// axes.
func Picture(lines ...*Line) chart.Picture {
	p := chart.Picture{PanelHeight: 2.6 * vg.Inch}
	right, top := 0.0, 0.0
	for _, l := range lines {
		for _, kind := range []Kind{Bulk, Password} {
			for _, m := range l.messages(kind) {
				right, top = max(right, (m.Came+m.Waited).Seconds()), max(top, m.Waited.Seconds())
			}
		}
	}
	inLine := chart.Entry{Name: "a password still in line at the end"}
	for _, l := range lines {
		panel, entries, waiting := l.draw()
		panel.X.Min, panel.X.Max, panel.Y.Min, panel.Y.Max = 0, max(1.02*right, 0.1), 0, max(1.08*top, 0.1)
		p.Panels, p.Legend = append(p.Panels, panel), entries
		if len(waiting.XYs) > 0 {
			inLine.Thumb = waiting
		}
	}
	if inLine.Thumb != nil {
		p.Legend = append(p.Legend, inLine)
	}
	return p
}

// draw returns the panel of a line, its legend, and the passwords that are still in line.
func (l *Line) draw() (*plot.Plot, []chart.Entry, *plotter.Scatter) {
	bulk, passwords := l.messages(Bulk), l.messages(Password)
	gone, _ := marks(bulk, bulkStyle)
	sent, waiting := marks(passwords, sentStyle)
	p := chart.NewPanel(fmt.Sprintf("%s: %d of %d of the %s and %d of %d passwords sent",
		l.Name, len(gone.XYs), len(bulk), l.Bulk, len(sent.XYs), len(passwords)), "how long it had waited, s")
	p.X.Label.Text = "seconds, when a message was sent"
	p.Add(gone, sent, waiting)
	return p, []chart.Entry{
		{Name: "a message of the " + l.Bulk, Thumb: gone},
		{Name: "a password", Thumb: sent},
	}, waiting
}

// marks returns a mark for each message, where it was sent, or the run ended, and as high
// as it had waited.
func marks(messages []Message, style draw.GlyphStyle) (sent, waiting *plotter.Scatter) {
	sent, waiting = &plotter.Scatter{GlyphStyle: style}, &plotter.Scatter{GlyphStyle: waitingStyle}
	for _, m := range messages {
		of := waiting
		if m.Sent {
			of = sent
		}
		of.XYs = append(of.XYs, plotter.XY{X: (m.Came + m.Waited).Seconds(), Y: m.Waited.Seconds()})
	}
	return sent, waiting
}
