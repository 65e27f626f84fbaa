package shaping

import (
	"testing"

	"github.com/weirgo/weir/throttle"
)

// Kept returns the ID of the caller for whom the turn at the roster's limiter is kept, and who
// waits for another limiter; zero: it is not kept.
func (r *Roster) Kept() uint64 {
	r.junction.mu.Lock()
	defer r.junction.mu.Unlock()
	if first := r.first(); first != nil && !r.heads[first].waitsIn(r) {
		return r.heads[first].head.id
	}
	return 0
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
