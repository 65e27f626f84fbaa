package gate

import (
	"context"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A line is a queue over a gate, in a bubble.
type line struct {
	*Gate
	*shaping.Queue
	t     *testing.T
	began time.Time
	ids   uint64
}

func lineOf(t *testing.T, set func(*Gate)) *line {
	t.Helper()
	return lineFor(t, gateOf(t, time.Minute), set)
}

func lineFor(t *testing.T, g *Gate, set func(*Gate)) *line {
	t.Helper()
	set(g)
	l := &line{Gate: g, Queue: shaping.NewQueue(g), t: t, began: time.Now()}
	t.Cleanup(func() { _ = l.Queue.Close() })
	return l
}

// depart waits for a call's turn, and returns its ID and its instant since the beginning of the
// bubble.
func (l *line) depart(ctx context.Context) (id uint64, at time.Duration, err error) {
	l.ids++
	turn := shaping.Turn{N: 1, ID: l.ids}
	err = l.WaitTurn(ctx, &turn)
	return turn.ID, time.Since(l.began), err
}

// want checks that the next call departs at a time after the beginning, and returns its ID.
func (l *line) want(at time.Duration) uint64 {
	l.t.Helper()
	id, got, err := l.depart(l.t.Context())
	if err != nil || got != at {
		l.t.Errorf("call %d departed after %v, %v, want %v", id, got, err, at)
	}
	return id
}

// land lands a call.
func (l *line) land(id uint64, served bool) {
	l.Landed(l.t.Context(), l.Now, &course.Answer{ID: id, Served: served})
}

// request returns a call's request to the limiter.
func (l *line) request(id uint64) throttle.Request {
	return throttle.Request{N: 1, ID: id}
}

// clock returns a clock that stands at an instant.
func clock(at throttle.Instant) func() throttle.Instant {
	return func() throttle.Instant { return at }
}
