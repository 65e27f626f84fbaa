package learn

import (
	"testing"
	"time"
)

// spent16 returns the state of a lane that has spent 16 permits of a vendor, one every second, and
// found the first one back a minute after it was spent.
func spent16(t *testing.T) (s State, last *Fact) {
	s = New(Setting{})
	for i := range int64(16) {
		f := reports(i+1, time.Duration(i)*time.Second, 16, float64(15-i))
		s = Observe(s, f, f.Landed)
	}
	last = reports(17, time.Minute, 16, 0)
	if s = Observe(s, last, last.Landed); s.Ceilings[0].Period != 60 {
		t.Fatalf("the period is %v s, want 60", s.Ceilings[0].Period)
	}
	return s, last
}

// The permits of a log are back a minute after they were spent: the departure of every second call
// was kept, and the next call leaves when that one is back.
func TestLogGivesBackWhatWasSpent(t *testing.T) {
	s, last := spent16(t)
	ordinal, many := last.Ordinal, int64(1) // of the first two, one was spent again
	for spent := time.Second; spent < 15*time.Second; spent, many = spent+2*time.Second, 2 {
		hold := s.Plan(last.Landed, ordinal).Hold.Sub(begun)
		if back := time.Minute + spent; hold < back || hold > back+100*time.Millisecond {
			t.Fatalf("after call %d: held until %v, want soon after %v", ordinal, hold, back)
		}
		for i := range many {
			ordinal++
			last = reports(ordinal, hold+time.Duration(i)*2*time.Millisecond, 16, float64(many-1-i))
			s = Observe(s, last, last.Landed)
		}
	}
}

// A bucket has gained one permit in that minute. When the next call is refused, it is not taken for
// a log any more.
func TestBucketIsNoLogAfterARefusal(t *testing.T) {
	s, last := spent16(t)
	hold := s.Plan(last.Landed, last.Ordinal).Hold.Sub(begun)
	f := reports(18, hold, 16, 0)
	f.Refused = true
	s = Observe(s, f, f.Landed)
	if c := s.Ceilings[0]; c.Period != 0 || c.back() != 0 {
		t.Errorf("after a refusal: period %v s, the next permit is expected at %v", c.Period, c.back().Sub(begun))
	}
}
