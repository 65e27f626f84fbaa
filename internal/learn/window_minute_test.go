package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A minuteLog is a state that learns from a vendor of 60 a minute, which reports the window and no
// reset.
type minuteLog struct {
	State
	last *Fact
}

// call observes a call that departed at a time, and was answered with so many left.
func (l *minuteLog) call(at time.Duration, left float64) {
	ordinal := int64(1)
	if l.last != nil {
		ordinal = l.last.Ordinal + 1
	}
	l.last = reports(ordinal, at, 60, left)
	l.last.Quotas[0].Window, l.last.Quotas[0].HasWindow = time.Minute, true
	l.State = observed(l.State, l.last, l.last.Landed)
}

// hold returns the instant of the next call.
func (l *minuteLog) hold() throttle.Instant { return l.Plan(l.last.Landed, l.last.Ordinal).Hold }

// A log of 60 a minute reports its window and no reset, as Xero does
// (https://developer.xero.com/documentation/guides/oauth2/limits/). Its first permit is back after a minute. The
// lane does not wait for a round time then: the next ones are back when they were spent a minute ago.
func TestReportedWindowSaysWhenALogGivesBack(t *testing.T) {
	l := minuteLog{State: New(Setting{})}
	l.call(0, 59)
	for i := range 39 {
		l.call(150*time.Millisecond+time.Duration(i)*5*time.Millisecond, float64(58-i))
	}
	singles := [...]float64{0.4, 0.7, 0.95, 1.1, 1.9, 1.95, 2.1, 3.9, 5.1, 5.95, 10.1, 15.1, 15.95, 30.1, 45.95}
	for i, at := range singles {
		l.call(seconds(at), float64(19-i))
	}
	l.call(60*time.Second+98*time.Millisecond, 5)
	hold := l.hold().Sub(begun)
	if soonest, latest := 60*time.Second+150*time.Millisecond, 60500*time.Millisecond; hold < soonest || hold > latest {
		t.Errorf("after the first permit is back the next call is held until %v, want %v to %v", hold, soonest, latest)
	}
}

// Nothing is left after a long silence, because other processes spent it, and when a window began is
// unknown. All of it is back within the reported length of the window.
func TestNoLookIsLaterThanTheReportedWindow(t *testing.T) {
	l := minuteLog{State: New(Setting{})}
	for i := range 20 {
		l.call(time.Duration(i)*5*time.Millisecond, float64(35-i))
	}
	l.call(2*time.Minute+500*time.Millisecond, 0)
	if hold := l.hold().Sub(l.last.Landed); hold > 61*time.Second {
		t.Errorf("with nothing left of 60 a minute, the next call is held for %v, want a minute at most", hold)
	}
}
