package learn

import (
	"testing"
	"time"
)

// A log of 60 a minute reports its window and no reset, as Xero does
// (https://developer.xero.com/documentation/guides/oauth2/limits/). Its first permit is back after a minute. The
// lane does not wait for a round time then: the next ones are back when they were spent a minute ago.
func TestReportedWindowSaysWhenALogGivesBack(t *testing.T) {
	s, ordinal := New(Setting{}), int64(0)
	var last *Fact
	call := func(at time.Duration, left float64) {
		ordinal++
		last = reports(ordinal, at, 60, left)
		last.Quotas[0].Window, last.Quotas[0].HasWindow = time.Minute, true
		s = Observe(s, last, last.Landed)
	}
	call(0, 59)
	for i := range 39 {
		call(150*time.Millisecond+time.Duration(i)*5*time.Millisecond, float64(58-i))
	}
	singles := [...]float64{0.4, 0.7, 0.95, 1.1, 1.9, 1.95, 2.1, 3.9, 5.1, 5.95, 10.1, 15.1, 15.95, 30.1, 45.95}
	for i, at := range singles {
		call(seconds(at), float64(19-i))
	}
	call(60*time.Second+98*time.Millisecond, 5)
	hold := s.Plan(last.Landed, ordinal).Hold.Sub(begun)
	if soonest, latest := 60*time.Second+150*time.Millisecond, 60500*time.Millisecond; hold < soonest || hold > latest {
		t.Errorf("after the first permit is back the next call is held until %v, want %v to %v", hold, soonest, latest)
	}
}

// Nothing is left after a long silence, because other processes spent it, and when a window began is
// unknown. All of it is back within the reported length of the window.
func TestNoLookIsLaterThanTheReportedWindow(t *testing.T) {
	s, ordinal := New(Setting{}), int64(0)
	var last *Fact
	call := func(at time.Duration, left float64) {
		ordinal++
		last = reports(ordinal, at, 60, left)
		last.Quotas[0].Window, last.Quotas[0].HasWindow = time.Minute, true
		s = Observe(s, last, last.Landed)
	}
	for i := range 20 {
		call(time.Duration(i)*5*time.Millisecond, float64(35-i))
	}
	call(2*time.Minute+500*time.Millisecond, 0)
	if hold := s.Plan(last.Landed, ordinal).Hold.Sub(last.Landed); hold > 61*time.Second {
		t.Errorf("with nothing left of 60 a minute, the next call is held for %v, want a minute at most", hold)
	}
}
