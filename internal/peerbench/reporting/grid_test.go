package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

func TestGridIsBucketsWindowsAndThoseDisturbed(t *testing.T) {
	names := make(map[string]bool)
	dialects := make(map[string]bool)
	for _, v := range grid(10) {
		names[v.String()] = true
		dialects[v.name] = true
		h := make(http.Header)
		v.style(h, testserver.Decision{Granted: true, Now: time.Now(), Standings: []testserver.Standing{{Limit: v.limit, Remaining: 3}}})
		if n, ok := testserver.Remaining(h); n != 3 || !ok {
			t.Errorf("%v reports %d, %v of 3 left in %v", v, n, ok, h)
		}
	}
	if len(buckets()) != 24 || len(windows()) != 6 || len(disturbed()) != 6 || len(names) != 36 {
		t.Errorf("%d buckets, %d windows, %d disturbed, %d names, want 24, 6, 6 and 36", len(buckets()), len(windows()), len(disturbed()), len(names))
	}
	if len(dialects) < 15 {
		t.Errorf("%d dialects, want 15 at least", len(dialects))
	}
}

func TestCallsTakeTheIdealTime(t *testing.T) {
	for _, v := range grid(10) {
		met := &testserver.Vendor{Limits: []testserver.Limit{v.limit}}
		least, most := 10*time.Second-v.limit.Per, 10*time.Second+v.limit.Per
		if ideal := met.Fastest(v.calls()); ideal < least || ideal > most {
			t.Errorf("%v: %d calls take %v, want %v to %v", v, v.calls(), ideal, least, most)
		}
	}
}

func TestGates(t *testing.T) {
	soon := vendor{limit: testserver.TokenBucket(200, time.Second, 20), service: soon, seconds: 10}
	late := soon
	late.service = span{40 * time.Millisecond, 80 * time.Millisecond}
	wrong := soon
	wrong.wrong = func() testserver.View { return testserver.NoReset }
	shared := soon
	shared.taken = 0.5
	tests := []struct {
		vendor vendor
		runs   []result
		want   bool
	}{
		{soon, []result{{wall: 1.05, refused: 2}, {wall: 1}}, true},
		{soon, []result{{wall: 1.06}}, false},
		{late, []result{{wall: 1.06}}, true},
		{wrong, []result{{wall: 1.17, refused: 20}}, true},
		{wrong, []result{{wall: 1.17, refused: 21}}, false},
		{shared, []result{{wall: 1.11, refused: 10}}, true},
		{shared, []result{{wall: 1.12}}, false},
		{soon, []result{{wall: 1}, {wall: 1, refused: 3}}, false},
		{soon, []result{{wall: 1, failed: 1}}, false},
	}
	for _, tt := range tests {
		if got := tt.vendor.passes(tt.runs); got != tt.want {
			t.Errorf("%v %+v passes: %v, want %v", tt.vendor, tt.runs, got, tt.want)
		}
	}
}

func TestCellsAreMedianAndWorst(t *testing.T) {
	runs := []result{{wall: 1.5, refused: 9}, {wall: 1, over: 1}, {wall: 1.25, refused: 1, over: 1}}
	if got, want := cells(runs), "1.25; 1.50 | 1; 9 | 0 | 1"; got != want {
		t.Errorf("cells = %q, want %q", got, want)
	}
}

// It takes some seconds, and every contender meets a bucket of few calls.
func TestMeasureWritesEachVendor(t *testing.T) {
	fast := vendor{dialects[full][0], testserver.TokenBucket(20, time.Second, 20), atOnce, 8, nil, 0, 1}
	var out strings.Builder
	b := bench{who: contenders, runs: 1, at: 2}
	if err := b.measure(&out, []vendor{fast, fast}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), fmt.Sprintf("| %v |", fast)); got != 2 {
		t.Errorf("%d rows, want 2:\n%s", got, out.String())
	}
	for _, c := range contenders {
		if !strings.Contains(out.String(), "\n"+c.name+": ") {
			t.Errorf("%s has no count of gates:\n%s", c.name, out.String())
		}
	}
}

func TestStrangersTakeTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds = 10
		v := vendor{dialects[full][0], testserver.TokenBucket(200, time.Second, 20), atOnce, 1, nil, 0.5, 10}
		met := &testserver.Vendor{}
		strangers := v.strangersAt(testserver.Run(t, testserver.Pipe, met))
		time.Sleep(seconds * time.Second)
		got, arrivals := strangers(), met.Arrivals()
		if got != 334 || len(arrivals) != got {
			t.Fatalf("%d strangers, %d of them granted, want 334: half of 200/s for a third of %d s", len(arrivals), got, seconds)
		}
		if first, last := arrivals[0].At, arrivals[333].At; first != seconds*time.Second/3 || last >= 2*seconds*time.Second/3 {
			t.Errorf("strangers came from %v to %v, want the second third of %d s", first, last, seconds)
		}
	})
}
