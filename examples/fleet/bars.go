package main

import (
	"math"
	"time"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weirgo/weir/examples/internal/chart"
)

// binWidth returns a round width with which a run has at most 125 bars.
func binWidth(r result) time.Duration {
	width := 10 * time.Millisecond
	for _, factor := range []time.Duration{2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000} {
		if r.length/width <= 125 {
			break
		}
		width = factor * 10 * time.Millisecond
	}
	return width
}

// stack returns the bars in drawing order, each over those before it: all requests, if some were
// refused; those that were not; those without the last replica's; and so on. It also returns the
// height of the highest.
func stack(r result, width time.Duration) (bars []*plotter.Histogram, highest float64) {
	bins := int(math.Ceil(float64(r.length) / float64(width)))
	all := make([]int, bins+1)
	sums := make([][]int, len(r.rows)) // up to each replica
	for i := range sums {
		sums[i] = make([]int, bins+1)
	}
	for _, a := range r.arrivals {
		bin := int(a.At / width)
		all[bin]++
		highest = max(highest, float64(all[bin]))
		for i := range sums {
			if !isRefusal(a) && i >= replicaOf(a)-1 {
				sums[i][bin]++
			}
		}
	}
	for i, n := range sums[len(sums)-1] {
		if all[i] == n {
			all[i] = 0 // it would shine through at the edges
		}
	}
	bars = append(bars, chart.Bars(all, width, refusedColor)) // the part above the others was refused
	for i := len(sums) - 1; i >= 0; i-- {
		bars = append(bars, chart.Bars(sums[i], width, replicaColors[i%len(replicaColors)]))
	}
	return bars, highest
}

// Stripes are the fills of the replicas, for the legend.
type stripes int

// Thumbnail implements plot.Thumbnailer.
func (n stripes) Thumbnail(c *draw.Canvas) {
	shown := min(int(n), len(replicaColors))
	each := (c.Max.X - c.Min.X) / vg.Length(shown)
	for i := range shown {
		x := c.Min.X + vg.Length(i)*each
		c.FillPolygon(replicaColors[i], []vg.Point{
			{X: x, Y: c.Min.Y}, {X: x, Y: c.Max.Y}, {X: x + each, Y: c.Max.Y}, {X: x + each, Y: c.Min.Y},
		})
	}
}
