package learn

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// instants returns all instants in a value.
func instants(v reflect.Value) (all []*throttle.Instant) {
	switch {
	case v.Type() == reflect.TypeFor[throttle.Instant]():
		return []*throttle.Instant{v.Addr().Interface().(*throttle.Instant)}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			all = append(all, instants(v.Field(i))...)
		}
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			all = append(all, instants(v.Index(i))...)
		}
	}
	return all
}

// A clock that moved back moves every instant of the state with it, once, whichever process reports
// it first.
func TestAStateFollowsAClockThatMovedBack(t *testing.T) {
	const now = throttle.Instant(1_700_000_000e9)
	s := New(Setting{})
	all := instants(reflect.ValueOf(&s).Elem())
	for i, at := range all {
		*at = now.Add(time.Duration(i) * time.Minute)
	}
	s.Last.At = now
	*all[len(all)-1] = 0 // no departure
	was := s
	s.Receive(Message{}.Append(nil), 7, now.Add(-mostLag))
	if s != was {
		t.Error("a state moved with a clock that may be right")
	}
	for range 2 {
		s.Receive(Message{}.Append(nil), 7, now.Add(-time.Hour))
	}
	old := instants(reflect.ValueOf(&was).Elem())
	for i, at := range all {
		want := old[i].Add(-time.Hour)
		if *old[i] == 0 {
			want = 0
		}
		if *at != want {
			t.Errorf("instant %d is %v too late", i, at.Sub(want))
		}
	}
}

// A fact's delay to the store is part of the round trip only up to a plausible trip: the store's
// clock may have been stepped meanwhile.
func TestARoundTripIsNoStepOfTheClock(t *testing.T) {
	const now = throttle.Instant(1_700_000_000e9)
	for _, late := range []time.Duration{-time.Hour, 0, 20 * time.Millisecond, time.Hour} {
		at := now
		fact := Message{Fact: &Fact{Departed: at.Add(-10 * time.Millisecond), Landed: at, Ordinal: 1, Flying: 1}}.Append(nil)
		s := New(Setting{})
		s.Receive(fact, 1, at.Add(late))
		if most := (10*time.Millisecond + mostLag).Seconds(); s.RTT > most {
			t.Errorf("a fact that is %v late makes the round trip %v s", late, s.RTT)
		}
		if late >= 0 && s.RTT < 0.010 {
			t.Errorf("a fact that is %v late makes the round trip %v s", late, s.RTT)
		}
	}
}
