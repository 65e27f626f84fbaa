package reserve

import "testing"

func TestTurnIsAtMostHalfOfTheLine(t *testing.T) {
	for _, c := range []struct {
		name      string
		allotment float64
		n, want   int
	}{
		{"half of the line", 10, 16, 8},
		{"the allotment", 4, 16, 4},
		{"three turns of 4, not 5, 5 and 2", 5, 12, 4},
		{"one at least", 0.2, 8, 1},
		{"one alone", 10, 1, 1},
		{"of an odd line the larger half", 10, 7, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := turn(c.allotment, c.n); got != c.want {
				t.Errorf("turn(%v, %d) = %d, want %d", c.allotment, c.n, got, c.want)
			}
		})
	}
}
