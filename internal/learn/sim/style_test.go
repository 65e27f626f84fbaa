package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// A vendor reports hostile values in turn, and then correct ones: the rate is the full one a window
// later.
func TestGoodHeadersAfterHostileOnes(t *testing.T) {
	t.Parallel()
	styles := []Style{Garbage, LiarLow, LiarHigh, Coarse, Garbage, Epoch}
	s := base(vendor(Rule{Kind: Fixed, Permits: 300, Per: 5 * time.Second}), styles[0])
	for i := range styles {
		s.Changes = append(s.Changes, Change{At: time.Duration(i) * 5 * time.Second, Style: &styles[i]})
	}
	good := s.Changes[len(s.Changes)-1].At
	s = s.over(good+5*time.Second, good+25*time.Second)
	for seed := range uint64(5) {
		res := Run(s, seed+1)
		if res.Served < 1140 || res.Refused > 12 || res.Early > 0 {
			t.Errorf("seed %d: %d served of 1,200, %d refused, %d before a reported time", seed+1, res.Served, res.Refused, res.Early)
		}
	}
}

// A bucket of 10/s burst 5 has 2.5 permits left.
func TestStylesReportTheSameBucket(t *testing.T) {
	t.Parallel()
	const now = 1_700_000_000_250_000_000
	d := newDoor(vendor(bucket(10, time.Second, 5)), now)
	d.meters[0].level = 2.5
	tests := []struct {
		style         Style
		limit, window float64 // zero: there is none
		reset         time.Duration
	}{
		{Style{Quotas: Tightest}, 5, 0, 250 * time.Millisecond},
		{Style{Quotas: Tightest, Reset: Next}, 5, 0, 50 * time.Millisecond},
		{Style{Quotas: Tightest, Reset: Next, Round: Secs}, 5, 0, time.Second},
		{Style{Quotas: Tightest, Reset: Next, Round: InEpoch}, 5, 0, time.Second},
		{Style{Quotas: Tightest, Limit: PerSec, Reset: NoReset}, 10, 0, -1},
		{Style{Quotas: Policies, Limit: PerSec, Round: Secs}, 10, 1, time.Second},
		{Style{Quotas: Tightest, Limit: NoLimit, Reset: NoReset}, 0, 0, -1},
	}
	for _, tt := range tests {
		wait, q := d.report(tt.style, now, true, nil)
		if wait != 0 || len(q) != 1 || q[0].Remaining != 2 || q[0].Limit != tt.limit || q[0].HasLimit != (tt.limit > 0) ||
			q[0].Window.Seconds() != tt.window || q[0].HasReset != (tt.reset >= 0) || q[0].HasReset && q[0].Reset != tt.reset {
			t.Errorf("%v reports %+v, and to wait %v", tt.style, q, wait)
		}
	}
}

// Flaws spoil as many answers as documented, and no others.
func TestFlaws(t *testing.T) {
	t.Parallel()
	for flaw, want := range map[Flaw][2]float64{NoFlaw: {}, TwoNodes: {0.85, 1}, Stale: {0.08, 0.12}, Missing: {0.08, 0.12}, NotOnRefusal: {0, 0}} {
		rng, h, off := rand.New(rand.NewPCG(1, 1)), history{}, 0
		const n = 10_000
		for i := range n {
			left := float64(n - i)
			q := Style{Flaw: flaw}.spoil(rng, &h, int64(i)*1e8, true, []learn.Quota{{Remaining: left, HasRemaining: true}})
			if len(q) == 0 || q[0].Remaining != left {
				off++
			}
			if flaw == Stale && i > 10 && q[0].Remaining != left && q[0].Remaining != left+10 {
				t.Fatalf("answer %d reports %v left of %v", i, q[0].Remaining, left)
			}
		}
		if share := float64(off) / n; share < want[0] || share > want[1] {
			t.Errorf("flaw %d spoils %.3f of the answers, want %v", flaw, share, want)
		}
	}
	if q := (Style{Flaw: NotOnRefusal}).spoil(nil, nil, 0, false, make([]learn.Quota, 1)); len(q) > 0 {
		t.Errorf("a refusal reports %+v", q)
	}
}
