package learn

import "testing"

func TestEachMechanismHasAName(t *testing.T) {
	if last := Mechanism(1) << (len(Mechanisms) - 1); last != Near {
		t.Errorf("%d names, and the mechanisms end with %#x", len(Mechanisms), Near)
	}
	for i, name := range Mechanisms {
		m := Mechanism(1) << i
		if s := New(Setting{Without: m}); !s.off(m) || s.off(^m) {
			t.Errorf("without %q, others are off", name)
		}
	}
}
