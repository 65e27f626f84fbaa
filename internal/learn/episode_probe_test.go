package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// The gap of probes grows 1.5 times each, to an hour at most. For a place, which is free when any
// call ends, it is a second at most.
func TestProbesGoEverLater(t *testing.T) {
	for mode, most := range map[Mode]time.Duration{Rate: time.Hour, Flight: time.Second} {
		s, now, last := New(Setting{}), throttle.InstantOf(time.Unix(1_700_000_000, 0)), time.Duration(0)
		s.Mode, s.RTT, s.RefR = mode, 0.005, 100
		for n := range 60 {
			s.probe(now)
			gap := s.Next.Sub(now)
			if gap > most || gap < last/3 || n == 0 && gap != 10*time.Millisecond {
				t.Fatalf("probe %d departs after %v, the previous after %v", n+1, gap, last)
			}
			now, last = s.Next, gap
		}
		if s.Gap != most.Seconds() {
			t.Errorf("the gap is %v s after sixty probes, want %v", s.Gap, most)
		}
	}
}

// After a refused probe, the next departs at the end of a block that began with the refusal.
func TestProbeWaitsForTheEndOfABlock(t *testing.T) {
	s, now := New(Setting{}), throttle.InstantOf(time.Unix(1_700_000_000, 0))
	s.Mode, s.RTT, s.RefR, s.Ref.At, s.Block = Rate, 0.005, 100, now, 30
	if s.probe(now); s.Next != now.Add(10*time.Millisecond) {
		t.Errorf("the first probe departs after %v", s.Next.Sub(now))
	}
	s.Asked = Mark{2, s.Next}
	if s.probe(s.Next); s.Next != now.Add(28500*time.Millisecond) {
		t.Errorf("the second probe departs after %v, want 28.5 s", s.Next.Sub(now))
	}
}
