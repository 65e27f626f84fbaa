package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/peerbench"
)

// small makes 40 calls, of which 20 pass at once.
func small() drain {
	return drain{calls: 40, workers: 8, vendorRate: 200, vendorBurst: 20, service: time.Millisecond, says: says["coarse"]}
}

func TestEveryContenderEnds(t *testing.T) {
	k := told{rate: 200, burst: 18, peerBurst: 20}
	for _, c := range append(k.weirs(true), k.peers()...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := small().run(c.wrap)
			if err != nil {
				t.Fatal(err)
			}
			if r.wall < small().ideal() {
				t.Errorf("took %v, the vendor allows no less than %v", r.wall, small().ideal())
			}
			if r.p50 > r.p99 || r.p99 > r.wall {
				t.Errorf("p50 %v, p99 %v, wall %v do not grow", r.p50, r.p99, r.wall)
			}
		})
	}
}

func TestRefusalsAndFailuresAreCounted(t *testing.T) {
	r, err := small().run(func(base http.RoundTripper) http.RoundTripper { return base })
	if err != nil {
		t.Fatal(err)
	}
	if r.refused == 0 || r.refused != r.failed {
		t.Errorf("without a limiter or retries: %d refused and %d failed, want the same number above 0", r.refused, r.failed)
	}
}

func TestCompareEndsWithMedians(t *testing.T) {
	d := small()
	d.calls = 10
	var out strings.Builder
	if err := compare(&out, d, []contender{{"retryablehttp", peerbench.Retryable}}, 3); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := rows[len(rows)-1]; !strings.HasPrefix(last, "| retryablehttp |") {
		t.Errorf("the last row is %q, want the medians", last)
	}
}

func TestMedianOfEachFigure(t *testing.T) {
	all := []result{{wall: 3, refused: 1}, {wall: 1, refused: 9}, {wall: 2, refused: 5}}
	if got, want := medians(all), (result{wall: 2, refused: 5}); got != want {
		t.Errorf("medians = %+v, want %+v", got, want)
	}
}
