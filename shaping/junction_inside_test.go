package shaping

import (
	"testing"

	"github.com/weirgo/weir/throttle"
)

// Kept reports whether the turn at the roster's limiter is kept for a caller who waits for
// another limiter.
func (r *Roster) Kept() bool {
	r.junction.mu.Lock()
	defer r.junction.mu.Unlock()
	first := r.first()
	return first != nil && !r.heads[first].waitsIn(r)
}

// A closed queue takes no memory of its rosters, which live longer.
func TestRostersForgetClosedQueues(t *testing.T) {
	limiter, err := throttle.Local{}.Limiter("")
	if err != nil {
		t.Fatal(err)
	}
	var n Junction
	r := n.NewRoster("account", limiter)
	q := n.NewQueue(r)
	if len(r.all()) != 1 {
		t.Errorf("%d queues of the roster, want 1", len(r.all()))
	}
	q.Close()
	if len(r.all()) != 0 {
		t.Errorf("%d queues of the roster after Close, want none", len(r.all()))
	}
}
