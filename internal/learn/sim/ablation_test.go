package sim

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// A need is a row that misses its gate, or a vendor of which too little is used, without a
// mechanism.
type need struct {
	row  string
	draw Draw
	used float64 // least use of the draw; zero: a row instead
}

// countsOn is a bucket of one that each refused call empties further: after an episode the second
// call, right after the first, is refused.
var countsOn = Draw{Seed: 1, Rate: 0.85, Run: Scenario{
	Vendor: Vendor{Rules: []Rule{bucket(51, time.Minute, 1)}, RefusalsCount: true}, Service: 39 * time.Millisecond, Way: 1500 * time.Microsecond, Jitter: 0.2, Workers: 8,
}.over(2*time.Minute, 4*time.Minute)}

var needs = map[string]need{
	"covered":  {row: "window 600/min first use, bare"},
	"windows":  {row: "window 600/min aligned, bare"},
	"trial":    {row: "drain 16 in flight, 50ms, constant"},
	"slowly":   {draw: countsOn, used: Stuck},
	"mute":     {draw: Random(409), used: Low},
	"before":   {row: "flood of 60/s, bare"},
	"block":    {row: "30 s block on exhaustion, bare"},
	"reported": {row: "drain IETF"},
	"room":     {row: "flood of 12 in flight, 64 workers, IETF"},
	"near":     {row: "drain configured 250 Retry-After s"},
}

// misses reports whether the row or the vendor is served too badly without some mechanisms.
func (n need) misses(t *testing.T, off learn.Mechanism) bool {
	t.Helper()
	if n.used > 0 {
		n.draw.Run.Without = off
		used, _ := n.draw.Play()
		return used < n.used
	}
	for _, row := range Table() {
		if row.Name == n.row {
			row.Run.Without = off
			return len(row.Gate.Misses(row.Play(1))) > 0
		}
	}
	t.Fatalf("there is no row %q", n.row)
	return false
}

func TestEachMechanismHasAName(t *testing.T) {
	if last := learn.Mechanism(1) << (len(Mechanisms) - 1); last != learn.Near {
		t.Errorf("%d names, and the mechanisms end with %#x", len(Mechanisms), learn.Near)
	}
}

// A mechanism without a need does not belong to the learner.
func TestEachMechanismIsNeeded(t *testing.T) {
	t.Parallel()
	for i, name := range Mechanisms {
		n, ok := needs[name]
		switch {
		case !ok:
			t.Errorf("nothing is known that needs %q", name)
		case n.misses(t, 0):
			t.Errorf("what needs %q is missed with it, too: %s %v", name, n.row, n.draw)
		case !n.misses(t, learn.Mechanism(1)<<i):
			t.Errorf("nothing needs %q: without it %s %v is served as well", name, n.row, n.draw)
		}
	}
}
