package chart

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

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
