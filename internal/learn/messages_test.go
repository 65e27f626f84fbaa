package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A call that departed without the store has no ordinal. Its reading replaces no known level, which
// is counted from departures: 30 of 100 are left after 70 calls, and the next reading is 20.
func TestACallWithoutAnOrdinalForgetsNoLevel(t *testing.T) {
	s, begun := New(Setting{Shared: true}), throttle.Instant(1e18)
	receive := func(ordinal, granted int64, left float64) (ceiling float64, binds bool) {
		at := begun.Add(time.Duration(granted) * 10 * time.Millisecond)
		q := Quota{Limit: 100, Remaining: left, HasLimit: true, HasRemaining: true}
		f := Fact{Departed: at.Add(-5 * time.Millisecond), Landed: at, Ordinal: ordinal, Flying: 1, Waited: true, Quotas: []Quota{q}}
		s.Receive(Message{Fact: &f}.Append(nil), granted, at)
		ceiling, _, binds = s.Bound()
		return ceiling, binds
	}
	for n := range int64(70) {
		receive(n+1, n+1, float64(99-n))
	}
	want, _, _ := s.Bound()
	if got, binds := receive(0, 80, 20); !binds || got != want {
		t.Errorf("after a call without an ordinal the ceiling is %v (binds: %v), want %v", got, binds, want)
	}
}
