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
	own := NewQueue(limiter)
	q := n.NewQueue(n.NewRoster("account", own))
	if len(own.peers()) != 2 {
		t.Errorf("%d queues of the roster, want 2", len(own.peers()))
	}
	q.Close()
	if len(own.peers()) != 1 {
		t.Errorf("%d queues of the roster after Close, want 1", len(own.peers()))
	}
}
