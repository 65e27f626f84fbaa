package wide

import "testing"

func TestWide(t *testing.T) { t.Nothing() }
