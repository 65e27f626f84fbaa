package learn

import "testing"

func TestEachMechanismHasAName(t *testing.T) {
	seen := Mechanism(0)
	for _, name := range Mechanisms() {
		m := MechanismNamed(name)
		if m == 0 || m&(m-1) != 0 || seen&m != 0 {
			t.Errorf("%q is mechanism %#x", name, m)
		}
		s := New(Setting{Without: m})
		if !s.off(m) || s.off(^m) {
			t.Errorf("without %q, others are off", name)
		}
		seen |= m
	}
	if seen != Near<<1-1 {
		t.Errorf("the names are of %#x, and the mechanisms end with %#x", seen, Near)
	}
	if MechanismNamed("none") != 0 {
		t.Error("an unknown name has a mechanism")
	}
}
