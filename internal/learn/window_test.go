package learn

import (
	"testing"
	"time"
)

// A lane that begins in the middle of a minute sees the first window end early. The next end is
// probed at a longer round length.
func TestFirstWindowMayHaveBegunBefore(t *testing.T) {
	for _, test := range []struct {
		seen time.Duration // of the first window
		want float64       // seconds until the next end
	}{
		{19 * time.Second, 30},
		{10 * time.Second, 10}, // it began with the first call
		{43 * time.Second, 60},
	} {
		s := New(Setting{})
		for i := range int64(9) {
			f := reports(i+1, test.seen*time.Duration(i)/10, 60, float64(29-i))
			s = Observe(s, f, f.Landed)
		}
		f := reports(10, test.seen, 60, 59)
		s = Observe(s, f, f.Landed)
		if got := s.Ceilings[0].Period; got != test.want {
			t.Errorf("a window that was seen for %v is taken to last %v s, want %v", test.seen, got, test.want)
		}
	}
}
