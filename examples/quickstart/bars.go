package main

import (
	"image/color"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/weirgo/weir/examples/internal/chart"
)

// mostBars keeps the pictures of long runs readable and small.
const mostBars = 600

// binWidth returns a tenth of a second, and more for runs too long for it and
// for rates too low.
func binWidth(results []result) time.Duration {
	width := 100 * time.Millisecond
	for _, r := range results {
		for r.span()/width > mostBars || r.limit.PerSecond()*width.Seconds() < 1 {
			width *= 10
		}
	}
	return width
}

// count returns the arrivals to keep in each bin of the width.
func count(as []arrival, width time.Duration, keep func(arrival) bool) []int {
	var counts []int
	for _, a := range as {
		for int(a.at/width) >= len(counts) {
			counts = append(counts, 0)
		}
		if keep(a) {
			counts[a.at/width]++
		}
	}
	return counts
}

// highest returns the height of the highest bar.
func highest(r result, width time.Duration) float64 {
	most := 0
	for _, n := range count(r.arrivals, width, func(arrival) bool { return true }) {
		most = max(most, n)
	}
	return float64(most)
}

func bars(r result, width time.Duration, fill color.Color, keep func(arrival) bool) *plotter.Histogram {
	return chart.Bars(count(r.arrivals, width, keep), width, fill)
}
