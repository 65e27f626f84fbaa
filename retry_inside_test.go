package weir

import (
	"context"
	"testing"
	"time"
)

// A deadline that has passed bounds the wait, as zero would not.
func TestPastDeadlineIsABound(t *testing.T) {
	c := call{ctx: past{t.Context()}}
	if left := c.timeLeft(); left != 1 {
		t.Errorf("timeLeft = %v, want the least bound, 1ns", left)
	}
}

// past is a context that has not noticed yet that its deadline has passed.
type past struct{ context.Context }

func (past) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }
