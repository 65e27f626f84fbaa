package learn

import (
	"reflect"
	"time"

	"github.com/weirgo/weir/throttle"
)

// mostLag bounds two things. A clock that is behind by less has not moved back. A fact's delay
// below it counts as part of the round trip.
const mostLag = time.Second

// Behind reports whether the state's clock has moved back: it is before the latest departure.
func (s *State) Behind(now throttle.Instant) bool { return s.Last.At.Sub(now) > mostLag }

// moveBack moves the instants in a value.
func moveBack(v reflect.Value, by time.Duration) {
	switch {
	case v.Type() == reflect.TypeFor[throttle.Instant]():
		if at := throttle.Instant(v.Int()); at > 0 {
			v.SetInt(int64(max(1, at.Add(-by))))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			moveBack(v.Field(i), by)
		}
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			moveBack(v.Index(i), by)
		}
	}
}
