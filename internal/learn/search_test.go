package learn

import (
	"math"
	"testing"
)

// grown returns the search after n served calls.
func grown(r Search, calls float64) Search {
	for range int(calls) {
		r.grow(&Fact{Flying: 1}, false, 0)
	}
	return r
}

// A search rises from its lower bound to its estimate in the calls that it takes, and beyond it
// in as many again. Far above it, it rises ever faster.
func TestSearchPassesItsEstimate(t *testing.T) {
	r := Search{W: 100, U: 0.1, R: 90}
	n := r.calls()
	if n < 20 || n > 60 {
		t.Errorf("a search of a tenth takes %.0f calls, want 20 to 60", n)
	}
	if at := grown(r, n).R; math.Abs(at-100) > 1.5 {
		t.Errorf("after %.0f calls the rate is %.1f/s, want 100/s", n, at)
	}
	if at := grown(r, 2*n).R; at < 115 || at > 130 {
		t.Errorf("after twice as many the rate is %.1f/s, want about 120/s", at)
	}
	if at := grown(r, 4*n).R; at < 500 {
		t.Errorf("after four times as many the rate is %.1f/s, want 500/s or more", at)
	}
}

// No answer raises the rate by more than the calls in flight can bear.
func TestSearchRisesByAQuarterAtMostInARoundTrip(t *testing.T) {
	r := Search{W: 100, U: 0.5, R: 100, X: 30}
	for range 10 {
		r.grow(&Fact{Flying: 10}, false, 0)
	}
	if r.R > 100*math.Exp(mostRise)+1e-9 {
		t.Errorf("ten answers of ten calls in flight raised 100/s to %.1f/s", r.R)
	}
}

// measured returns a search after a sample.
func measured(r Search, m sample) Search {
	r.measure(&m)
	return r
}

func TestEstimateLiesBetweenServedAndRefused(t *testing.T) {
	known := Search{W: 200, U: 0.1, R: 230, X: 2, Measured: true}
	bare := measured(known, sample{n: 1980, t: 10, silence: 0.05, rate: 230, rtt: 0.005})
	if bare.W < 198 || bare.W > 230 || bare.U < 0.07 || bare.U > 0.08 {
		t.Errorf("of 198/s served and 230/s refused: %.1f/s within %.3f", bare.W, bare.U)
	}
	probed := measured(known, sample{n: 1980, t: 10, silence: 1, probed: 0.95, covered: 0.95, rate: 230, rtt: 0.005})
	if probed.W < 198 || probed.W > 200 || probed.U != leastWidth {
		t.Errorf("refused again and again for a second: %.1f/s within %.3f, want 198 to 200/s", probed.W, probed.U)
	}
	if first := measured(Search{U: mostWidth}, sample{n: 40, burst: 39, t: 1, silence: 0.01, rate: 60, rtt: 0.005}); first.U < firstCalls/40.0 {
		t.Errorf("a first count of forty calls is taken to be exact to %.3f", first.U)
	}
}

// A bucket of 200/s is served again in an interval. A silence of ten seconds is a window's, as
// long as the time in which it was spent.
func TestLongSilenceShowsAWindow(t *testing.T) {
	r := Search{W: 10, U: 0.1, R: 12, X: 1, Measured: true, Burst: 400, B: 400}
	if b := measured(r, sample{n: 600, t: 60, silence: 0.1, rate: 12, rtt: 0.005}); b.P != 0 {
		t.Errorf("a silence of 0.1 s at 10/s shows a period of %.1f s", b.P)
	}
	w := measured(r, sample{n: 600, t: 60, silence: 20, rate: 12, rtt: 0.005})
	if w.P != 60 || !w.windows() {
		t.Errorf("a silence of 20 s of 60 shows a period of %.1f s, windows %v", w.P, w.windows())
	}
	if n, before := w.calls(), r.calls(); n < 30*before/10 {
		t.Errorf("a search in windows takes %.0f calls, and %.0f elsewhere", n, before)
	}
}

// Two silences of the same length are a block, whatever was served before. A short one ends that.
func TestEqualSilencesAreABlock(t *testing.T) {
	r := Search{W: 10, U: 0.1, R: 12, X: 1, Measured: true}
	m := sample{n: 200, t: 50, silence: 30, rate: 12, rtt: 0.005}
	if r = measured(r, m); r.Block != 0 {
		t.Errorf("one silence is a block of %.0f s", r.Block)
	}
	if r = measured(r, m); r.Block != 30 {
		t.Errorf("two silences of 30 s are a block of %.0f s", r.Block)
	}
	m.silence = 0.1
	if r = measured(r, m); r.Block != 0 {
		t.Errorf("a silence of 0.1 s leaves a block of %.0f s", r.Block)
	}
}
