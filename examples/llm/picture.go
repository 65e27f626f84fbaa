package main

import (
	"fmt"
	"image/color"
	"time"

	"gonum.org/v1/plot/vg"

	"github.com/weirgo/weir/examples/internal/chart"
)

// bar is how long one bar of the picture takes.
const bar = time.Second

var blue = color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}

// picture draws the tokens of each second's calls, a panel for each client.
func picture(clients []*client, length time.Duration) chart.Picture {
	p := chart.Picture{PanelHeight: 2.6 * vg.Inch}
	quota, right := tokens.PerSecond()*bar.Seconds(), length.Truncate(bar).Seconds()
	for _, c := range clients {
		sums := make([]int, int(right/bar.Seconds()))
		for _, a := range c.model.vendor.Arrivals().Granted() {
			if i := int(a.At / bar); i < len(sums) { // the last bar would be incomplete
				sums[i] += a.Cost
			}
		}
		_, used, _ := c.model.served()
		panel := chart.NewPanel(fmt.Sprintf("%s: %d tokens", c.name, used), fmt.Sprintf("tokens per %s\nas the model counts them", chart.Spaced(bar)))
		bars, line := chart.Bars(sums, bar, blue), chart.LimitLine(quota, right)
		panel.Add(bars, line)
		panel.X.Min, panel.X.Max, panel.Y.Min, panel.Y.Max = 0, right, 0, 1.5*quota
		p.Panels = append(p.Panels, panel)
		p.Legend = []chart.Entry{{Name: "tokens of the answers", Thumb: bars}, {Name: fmt.Sprintf("the quota: %d a minute", tokens.Permits), Thumb: line}}
	}
	return p
}
