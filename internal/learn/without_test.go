package learn

import "testing"

func TestEachMechanismIsOffAlone(t *testing.T) {
	for m := Covered; m <= Near; m <<= 1 {
		if s := New(Setting{Without: m}); !s.off(m) || s.off(^m) {
			t.Errorf("without %#x, others are off", m)
		}
	}
}
