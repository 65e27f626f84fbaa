package main

import (
	"image/color"
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// mostBars keeps the pictures of long runs readable and small.
const mostBars = 600

// binWidth returns a tenth of a second, and more for runs too long for it and
// for rates too low.
func binWidth(results []result) time.Duration {
	width := 100 * time.Millisecond
	for _, r := range results {
		for r.span()/width > mostBars || perSecond(r.limit)*width.Seconds() < 1 {
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
	h := &plotter.Histogram{FillColor: fill}
	for i, n := range count(r.arrivals, width, keep) {
		if n > 0 {
			from := float64(i) * width.Seconds()
			h.Bins = append(h.Bins, plotter.HistogramBin{Min: from, Max: from + width.Seconds(), Weight: float64(n)})
		}
	}
	return h
}

// limitLine is as high as bars that use the rate to the last permit.
func limitLine(r result, width time.Duration, right float64) *plotter.Line {
	y := perSecond(r.limit) * width.Seconds()
	line := &plotter.Line{XYs: plotter.XYs{{X: 0, Y: y}, {X: right, Y: y}}}
	line.Color, line.Width, line.Dashes = limitColor, vg.Points(1.5), []vg.Length{vg.Points(6), vg.Points(3)}
	return line
}

// ticks returns a marker of round numbers, at most that many and one.
func ticks(most float64) plot.Ticker {
	return plot.TickerFunc(func(low, high float64) []plot.Tick {
		step := roundUp((high - low) / most)
		var marks []plot.Tick
		for i := math.Ceil(low / step); i*step <= high; i++ {
			marks = append(marks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'g', 6, 64)})
		}
		return marks
	})
}

// roundUp returns the next number of the form 1, 2 or 5 times a power of ten.
func roundUp(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, digit := range []float64{1, 2, 5} {
		if x <= digit*power {
			return digit * power
		}
	}
	return 10 * power
}
