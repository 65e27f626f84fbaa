package learn_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// A lane with little to do is not held for longer than one that is busy.
func TestAQuietLaneIsNotHeldForLong(t *testing.T) {
	s := learn.New(learn.Setting{Configured: 100, Burst: 10})
	for n := range int64(40) {
		f := learn.Fact{Ordinal: n + 1, Granted: n + 1, Flying: 1, Departed: at(float64(n) * 60)}
		f.Landed = f.Departed.Add(5 * time.Millisecond)
		if n == 39 {
			f.Refused = true
		}
		s = learn.Observe(s, &f, f.Landed)
	}
	now := at(39 * 60)
	if hold := s.Plan(now, 40).Hold.Sub(now); hold > time.Second {
		t.Errorf("after the refusal, nobody goes for %v", hold)
	}
	f := learn.Fact{Ordinal: 41, Granted: 41, Flying: 1, Departed: at(39*60 + 1), Landed: at(39*60 + 1.005)}
	s = learn.Observe(s, &f, f.Landed)
	if hold := s.Plan(f.Landed, 41).Hold.Sub(f.Landed); hold > time.Second {
		t.Errorf("after a served call, nobody goes for %v", hold)
	}
}
