package main

import (
	"fmt"
	"image/color"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/internal/testserver"
)

// colors are the fills of the accounts, from below.
var colors = []color.RGBA{
	{R: 0x33, G: 0x22, B: 0x88, A: 0xff},
	{R: 0x88, G: 0xcc, B: 0xee, A: 0xff},
	{R: 0xdd, G: 0xcc, B: 0x77, A: 0xff},
}

// bar is how long one bar of the picture takes.
const bar = 200 * time.Millisecond

// picture draws what the vendor saw: a bar for each 200 ms, with the accounts one above the
// other.
func picture(arrivals testserver.Arrivals) chart.Picture {
	last := time.Duration(0)
	if len(arrivals) > 0 {
		last = arrivals[len(arrivals)-1].At
	}
	sums := make([][]int, len(accounts)) // of each account and those below
	for i := range sums {
		sums[i] = make([]int, last/bar+1)
	}
	highest := 0
	for _, a := range arrivals {
		for i := len(sums) - 1; i >= 0; i-- {
			sums[i][a.At/bar]++
			if a.ID == "Bearer "+accounts[i].apiKey {
				break
			}
		}
		highest = max(highest, sums[len(sums)-1][a.At/bar])
	}
	right := (last + bar).Truncate(bar).Seconds()
	line := chart.LimitLine(organisation.PerSecond()*bar.Seconds(), right)
	p := chart.NewPanel(fmt.Sprintf("%d calls of three accounts, which share 30/s", len(arrivals)), fmt.Sprintf("calls per %s\nas seen by the vendor", chart.Spaced(bar)))
	var legend []chart.Entry
	for i := len(sums) - 1; i >= 0; i-- {
		bars := chart.Bars(sums[i], bar, colors[i])
		p.Add(bars)
		legend = append(legend, chart.Entry{Name: fmt.Sprintf("%s: %s", accounts[i].name, accounts[i].tier), Thumb: bars})
	}
	p.Add(line)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, right, 0, max(float64(highest)*1.1, 1)
	legend = append(legend, chart.Entry{Name: "all together: 30/s", Thumb: line})
	return chart.Picture{Panels: []*plot.Plot{p}, PanelHeight: 3 * vg.Inch, Legend: legend}
}
