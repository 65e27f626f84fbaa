package chart

import (
	"slices"
	"testing"

	"gonum.org/v1/plot"
)

func TestTicksAreRoundAndFew(t *testing.T) {
	for _, tt := range []struct {
		high float64
		want []string
	}{
		{11.2, []string{"0", "2", "4", "6", "8", "10"}},
		{0.5, []string{"0", "0.1", "0.2", "0.3", "0.4", "0.5"}},
		{86400, []string{"0", "20000", "40000", "60000", "80000"}},
	} {
		if got := labels(ticks(6).Ticks(0, tt.high)); !slices.Equal(got, tt.want) {
			t.Errorf("ticks to %v = %v, want %v", tt.high, got, tt.want)
		}
	}
}

func labels(ticks []plot.Tick) []string {
	var out []string
	for _, t := range ticks {
		out = append(out, t.Label)
	}
	return out
}
