package main

import (
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestPicturesShowEveryRun(t *testing.T) {
	limit := throttle.TokenBucket(50, time.Second, 10)
	for name, results := range map[string][]result{
		"two runs": {
			{title: "one", limit: limit, arrivals: []arrival{{}, {at: time.Second, refused: true}}},
			{title: "two", limit: limit, arrivals: []arrival{{at: 3 * time.Second}}},
		},
		"nothing arrived": {{title: "one", limit: limit}},
		"a day":           {{title: "one", limit: limit, remote: true, arrivals: []arrival{{}, {at: 24 * time.Hour}}}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pic")
			if err := writePictures(path, results); err != nil {
				t.Fatal(err)
			}
			svg, err := os.ReadFile(path + ".svg")
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if !strings.Contains(string(svg), ">"+r.title+":") {
					t.Errorf("the SVG lacks the panel %q", r.title)
				}
			}
			f, err := os.Open(path + ".png")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			image, err := png.Decode(f)
			if err != nil || image.Bounds().Dx() < 1000 {
				t.Errorf("PNG: %v, error %v", image, err)
			}
		})
	}
}

func TestCountPutsArrivalsIntoBins(t *testing.T) {
	ms := time.Millisecond
	as := []arrival{{at: 0}, {at: 99 * ms, refused: true}, {at: 100 * ms}, {at: 350 * ms}}
	if got := count(as, 100*ms, func(a arrival) bool { return !a.refused }); !slices.Equal(got, []int{1, 1, 0, 1}) {
		t.Errorf("count = %v, want [1 1 0 1]", got)
	}
}

func TestBinsOfLongOrSlowRunsAreWider(t *testing.T) {
	for _, tt := range []struct {
		rate int // per second
		span time.Duration
		want time.Duration
	}{
		{50, 0, 100 * time.Millisecond},
		{50, 30 * time.Second, 100 * time.Millisecond},
		{50, 2 * time.Minute, time.Second},
		{50, 24 * time.Hour, 1000 * time.Second},
		{2, 10 * time.Second, time.Second},
	} {
		r := result{limit: throttle.TokenBucket(tt.rate, time.Second, 1), arrivals: []arrival{{at: tt.span}}}
		if got := binWidth([]result{r}); got != tt.want {
			t.Errorf("binWidth at %d/s over %v = %v, want %v", tt.rate, tt.span, got, tt.want)
		}
	}
}
