package main

import (
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/weirgo/weir/throttle"
)

func TestPictureShowsRunAndMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pic")
	if err := writePicture(path, twoReplicas()); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(path + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		">40 requests in 2.0 s, 1 of them refused; in any second 20 at most, and 16 by the bound<",
		">requests per 20 ms<", ">replica 2 killed<", ">Redis flushed<",
		">replicas 1 to 2, from below<", ">refused (429)<", ">the limit: 10/s, and a burst of 5<",
	} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the SVG lacks %s", want)
		}
	}
	f, err := os.Open(path + ".png")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if image, err := png.Decode(f); err != nil || image.Bounds().Dx() < 1000 {
		t.Errorf("PNG: %v, error %v", image, err)
	}
}

func TestPictureOfNothing(t *testing.T) {
	r := result{room: roomFor(throttle.TokenBucket(100, time.Second, 10), 1, nil), rows: []row{{starts: 1}}}
	if err := writePicture(filepath.Join(t.TempDir(), "pic"), r); err != nil {
		t.Error(err)
	}
}

func TestBarsStandOnEachOther(t *testing.T) {
	bars, highest := stack(twoReplicas(), time.Second)
	var got [][]float64
	for _, b := range bars {
		got = append(got, weights(b))
	}
	want := [][]float64{{20}, {19, 20}, {15, 15}} // all, not refused, replica 1's
	if !slices.EqualFunc(got, want, slices.Equal) || highest != 20 {
		t.Errorf("stack = %v, highest %v, want %v, 20", got, highest, want)
	}
}

func weights(h *plotter.Histogram) []float64 {
	var ws []float64
	for _, b := range h.Bins {
		ws = append(ws, b.Weight)
	}
	return ws
}

func TestBinWidth(t *testing.T) {
	for length, want := range map[time.Duration]time.Duration{
		0:                10 * time.Millisecond,
		time.Second:      10 * time.Millisecond,
		20 * time.Second: 200 * time.Millisecond,
		time.Minute:      500 * time.Millisecond,
		time.Hour:        50 * time.Second,
	} {
		if got := binWidth(result{length: length}); got != want {
			t.Errorf("binWidth of %v = %v, want %v", length, got, want)
		}
	}
}

func TestLabelsDoNotMeet(t *testing.T) {
	at := func(d time.Duration) span { return span{event: event{kind: flushRedis}, from: d, until: d} }
	m := newMarks([]span{at(time.Second), at(1100 * time.Millisecond), at(1200 * time.Millisecond), at(10 * time.Second)}, 20)
	if want := []int{0, 1, 2, 0}; !slices.Equal(m.rows, want) {
		t.Errorf("rows = %v, want %v", m.rows, want)
	}
	if none := newMarks(nil, 20).headroom(); m.headroom() <= none {
		t.Errorf("headroom %v with labels, %v without", m.headroom(), none)
	}
}
