package testserver_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/internal/testserver"
)

func arrivalsAt(instants ...time.Duration) testserver.Arrivals {
	var as testserver.Arrivals
	for _, at := range instants {
		as = append(as, testserver.Arrival{At: at})
	}
	return as
}

func drawArrivals(t *rapid.T) testserver.Arrivals {
	var as testserver.Arrivals
	var at time.Duration
	for _, gap := range rapid.SliceOfN(rapid.Int64Range(0, 30), 0, 40).Draw(t, "gaps") {
		at += time.Duration(gap)
		as = append(as, testserver.Arrival{At: at})
	}
	return as
}

func TestMaxInCountsEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		as := drawArrivals(t)
		w := time.Duration(rapid.Int64Range(0, 100).Draw(t, "window"))
		want := 0
		for _, first := range as {
			inside := as.Filter(func(a testserver.Arrival) bool { return a.At >= first.At && a.At < first.At+w })
			want = max(want, len(inside))
		}
		if got := as.MaxIn(w); got != want {
			t.Fatalf("MaxIn(%v) = %d, want %d", w, got, want)
		}
	})
}

func TestBurstAtIsTheLeastThatHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		as := drawArrivals(t)
		permits := rapid.IntRange(1, 5).Draw(t, "permits")
		per := rapid.Int64Range(1, 50).Draw(t, "per")
		var want int64
		for i := range as {
			for j := i; j < len(as); j++ {
				over := int64(j-i+1)*per - int64(permits)*int64(as[j].At-as[i].At)
				want = max(want, (over+per-1)/per)
			}
		}
		if got := as.BurstAt(permits, time.Duration(per)); int64(got) != want {
			t.Fatalf("BurstAt(%d, %d) = %d, want %d", permits, per, got, want)
		}
	})
}

func TestArrivalsMinGapAndSpan(t *testing.T) {
	tests := []struct {
		name              string
		arrivals          testserver.Arrivals
		wantGap, wantSpan time.Duration
	}{
		{"none", nil, 0, 0},
		{"one", arrivalsAt(5), 0, 0},
		{"two", arrivalsAt(5, 9), 4, 4},
		{"least in the middle", arrivalsAt(1, 9, 10, 30), 1, 29},
		{"together", arrivalsAt(1, 1, 30), 0, 29},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.arrivals.MinGap(); got != tt.wantGap {
				t.Errorf("MinGap() = %v, want %v", got, tt.wantGap)
			}
			if got := tt.arrivals.Span(); got != tt.wantSpan {
				t.Errorf("Span() = %v, want %v", got, tt.wantSpan)
			}
		})
	}
}
