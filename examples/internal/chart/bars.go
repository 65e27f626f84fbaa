package chart

import (
	"fmt"
	"image/color"
	"time"

	"gonum.org/v1/plot/plotter"
)

// Bars returns a bar for each count that is not zero, side by side from 0 on.
func Bars(counts []int, width time.Duration, fill color.Color) *plotter.Histogram {
	h := &plotter.Histogram{FillColor: fill}
	for i, n := range counts {
		if n > 0 {
			from := float64(i) * width.Seconds()
			h.Bins = append(h.Bins, plotter.HistogramBin{Min: from, Max: from + width.Seconds(), Weight: float64(n)})
		}
	}
	return h
}

// Spaced writes the width of a bar: "100 ms", "10 s".
func Spaced(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
