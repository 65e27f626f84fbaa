package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// The gap of probes grows 1.5 times each, to an hour at most. For a place, which is free when any
// call ends, it is a second at most.
func TestProbesGoEverLater(t *testing.T) {
	for _, c := range []struct {
		places bool
		most   time.Duration
	}{{false, time.Hour}, {true, time.Second}} {
		p, now, last := new(Probe), throttle.InstantOf(time.Unix(1_700_000_000, 0)), time.Duration(0)
		for n := range 60 {
			p.after(now, 0.01, c.places, 0.005)
			gap := p.Next.Sub(now)
			if gap > c.most || gap < last/3 || n == 0 && gap != 10*time.Millisecond {
				t.Fatalf("probe %d departs after %v, the previous after %v", n+1, gap, last)
			}
			now, last = p.Next, gap
		}
		if p.Gap != c.most.Seconds() {
			t.Errorf("the gap is %v s after sixty probes, want %v", p.Gap, c.most)
		}
	}
}

// After a refused probe, the next departs at the end of a block that began with the refusal.
func TestProbeWaitsForTheEndOfABlock(t *testing.T) {
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	p := new(Probe)
	p.after(now, 0.01, false, 0.005)
	if p.blocks(now, 30); p.Next != now.Add(10*time.Millisecond) {
		t.Errorf("the first probe departs after %v", p.Next.Sub(now))
	}
	p.Asked = Mark{2, p.Next}
	p.after(p.Next, 0.01, false, 0.005)
	if p.blocks(now, 30); p.Next != now.Add(28500*time.Millisecond) {
		t.Errorf("the second probe departs after %v, want 28.5 s", p.Next.Sub(now))
	}
}
