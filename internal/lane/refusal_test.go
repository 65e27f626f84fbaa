package lane

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Calls that land are no longer in flight, whether or not their answers are looked at.
func TestLandedCallsAreNotInFlight(t *testing.T) {
	for _, test := range []struct {
		name   string
		limits []throttle.Limit
	}{
		{"no limit", nil},
		{"a limit", []throttle.Limit{throttle.TokenBucket(1000, time.Second, 1000)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			lanes := newLanes()
			lanes.settings.Limits = func(string) []throttle.Limit { return test.limits }
			l, err := lanes.Enter("api.example.com")
			if err != nil {
				t.Fatal(err)
			}
			for call := range uint64(24) {
				turn := shaping.Turn{N: 1, ID: call + 1}
				seen, err := l.Wait(t.Context(), &turn)
				if err != nil {
					t.Fatal(err)
				}
				if flying := l.course.Look().Flying(); flying != 1 {
					t.Fatalf("call %d: %d in flight after it departed, want 1", call, flying)
				}
				l.Landed(t.Context(), &course.Answer{ID: turn.ID, Seen: seen, Departed: turn.Departed(), Served: call%2 == 0})
				if flying := l.course.Look().Flying(); flying != 0 {
					t.Fatalf("call %d: %d in flight after it landed, want none", call, flying)
				}
			}
		})
	}
}
