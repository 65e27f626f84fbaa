package throttle

import (
	"math"
	"testing"
)

func TestSlackIsTheLeastSince(t *testing.T) {
	s := slack{from: 0}
	for i, ahead := range []int64{5, 9, 7, 20} {
		s.note(Instant(10*(i+1)), ahead)
	}
	for _, c := range []struct {
		at   Instant
		want int64
	}{{-1, 0}, {0, 0}, {1, 5}, {9, 5}, {10, 7}, {29, 7}, {30, 20}, {40, math.MaxInt64}} {
		if got := s.after(c.at); got != c.want {
			t.Errorf("after(%d) = %d, want %d", c.at, got, c.want)
		}
	}
	s.lower(10, 3)
	if got := s.after(10); got != 4 {
		t.Errorf("after lowering by 3, after(10) = %d, want 4", got)
	}
}

// Where instants come out of order, or there are too many, it errs on the side
// of less.
func TestSlackErrsToLess(t *testing.T) {
	var s slack
	s.note(100, 5)
	s.note(50, 3)
	if got := s.after(70); got > 5 {
		t.Errorf("after(70) = %d, want at most 5", got)
	}
	s = slack{}
	for i := range 100 {
		s.note(Instant(i+1), int64(i))
	}
	for at := Instant(1); at < 100; at++ {
		if got := s.after(at); got > int64(at) {
			t.Errorf("after(%d) = %d, want at most %d", at, got, at)
		}
	}
}
