package main

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/weirgo/weir/internal/testserver"
)

// twoPhases is a run of 4 s whose limit changed after 1.5 s.
func twoPhases() result {
	return result{
		length: 4 * time.Second,
		phases: []phase{{limit: first}, {limit: second, from: 1500 * time.Millisecond}},
		arrivals: testserver.Arrivals{
			{Granted: true}, {At: 499 * time.Millisecond}, {At: 1499 * time.Millisecond, Granted: true},
			{At: 1500 * time.Millisecond, Granted: true}, {At: 3999 * time.Millisecond, Granted: true},
		},
		failed: 1, cause: "answer 429 Too Many Requests",
	}
}

func TestTable(t *testing.T) {
	const want = `
     seconds  limit  served  could be  share  429s
  0.0 to 1.5   50/s       2        85   0.02     1
  1.5 to 4.0  100/s       2       250   0.01     0
         all              4       335   0.01     1
could be: what the vendor would have served, its rate and the burst once
1 calls failed; the first ended with: answer 429 Too Many Requests
`
	var got bytes.Buffer
	writeTable(&got, twoPhases())
	if got.String() != want {
		t.Errorf("table:\n%s\nwant:\n%s", &got, want)
	}
}

func TestPictureShowsTheStepTheCallsAndTheRefusals(t *testing.T) {
	r := twoPhases()
	if got, want := r.counts(), []int{1, 0, 1, 1, 0, 0, 0, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("counts = %v, want %v", got, want)
	}
	if got, want := r.limitLine().XYs, (plotter.XYs{{X: 0, Y: 25}, {X: 1.5, Y: 25}, {X: 1.5, Y: 50}, {X: 4, Y: 50}}); !slices.Equal(got, want) {
		t.Errorf("limit line %v, want %v", got, want)
	}
	if got, want := r.refusals(7).XYs, (plotter.XYs{{X: 0.499, Y: 7}}); !slices.Equal(got, want) {
		t.Errorf("refusals %v, want %v", got, want)
	}
}
