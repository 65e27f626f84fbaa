package lane

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/gate"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A Line is where calls wait that need the same lanes: the queue of one lane, or that of a group.
type Line struct {
	Lanes []*Lane        // the narrowest first
	Queue *shaping.Queue // lets a turn depart when all lanes do

	sublanes []*Lane // that the calls need, too
}

// Late reports whether a lane charged the turn's last departure so long ago that its permits hold
// no more.
func (n *Line) Late(t *shaping.Turn) bool {
	for i, l := range n.Lanes {
		if l.late(n.Queue.Part(t.Departure(), i)) {
			return true
		}
	}
	return false
}

// Return gives back what the turn was granted last. If it is too late for that,
// the limits of this process are settled, as if nothing had been granted.
func (n *Line) Return(t *shaping.Turn) {
	d := t.Departure()
	var late [shaping.MaxRosters]bool
	for i, l := range n.Lanes {
		late[i] = l.late(n.Queue.Part(d, i))
	}
	n.Queue.Return(t)
	for i, l := range n.Lanes {
		if _, remote := l.Gate.Limiter.(throttle.Remote); late[i] && !remote {
			l.Queue.Settle(n.Queue.Part(d, i), throttle.Request{})
		}
	}
}

// CouldTake reports whether the lanes might let the turn go after the delay: no lane is certain to
// reject it.
func (n *Line) CouldTake(ctx context.Context, t *shaping.Turn, delay time.Duration) bool {
	closed := func(l *Lane) bool { return l.Gate.ClosedFor(l.Now()) > delay }
	return !slices.ContainsFunc(n.Lanes, closed) && n.Queue.CheckWait(ctx, t, delay) == nil
}

// Named returns the lane whose roster, or whose sub-lane's roster, has a name; if none has it,
// the widest.
func (n *Line) Named(name string) *Lane {
	l := n.named(name)
	if l.sub != nil {
		return l.sub.lane
	}
	return l
}

// named returns the lane or sub-lane whose roster has a name; if none has it, the widest lane.
func (n *Line) named(name string) *Lane {
	for _, lanes := range [...][]*Lane{n.Lanes, n.sublanes} {
		for _, l := range lanes {
			if l.name() == name {
				return l
			}
		}
	}
	return n.Lanes[len(n.Lanes)-1]
}

// Forecast returns how long the turn would wait if it came now, as [shaping.Queue.Forecast] does.
// The learned limits count in the expected wait.
func (n Line) Forecast(ctx context.Context, t *shaping.Turn) (shaping.Forecast, error) {
	f, err := n.Queue.Forecast(ctx, t)
	for i, l := range slices.Concat(n.Lanes, n.sublanes) {
		r := n.Queue.Part(shaping.Departure{Request: throttle.Request{N: t.N, Each: t.Each, ID: t.ID}}, i).Request
		err = l.foresee(&f, r, err)
	}
	held := n.Named(f.Lane)
	f.Limit = held.Label(f.Limit)
	if f.Lane != "" {
		f.Lane = held.Key
	}
	return f, err
}

// foresee adds to a forecast, and to its error, the learned limit of the server, and a pause that
// rejects the request.
func (l *Lane) foresee(f *shaping.Forecast, r throttle.Request, err error) error {
	now := l.Now()
	r.Since = now
	expected := max(l.Gate.Expect(now, r).Sub(now), 0)
	if _, plan := l.Course.Learned(); plan.Rate > 0 && l.Course.Steers() { // certain or not
		expected += time.Duration(min(float64(f.Waiting)/plan.Rate, math.MaxInt64/2/float64(time.Second)) * float64(time.Second))
	}
	f.Expected = max(f.Expected, expected)
	if closed := l.Gate.ClosedFor(now); closed > 0 && !errors.Is(err, shaping.ErrClosed) {
		f.Wait, f.Expected, f.Lane, f.Limit, f.Reason = closed, max(f.Expected, closed), l.Key, "", throttle.ReasonPause
		err = &shaping.Error{Err: gate.ErrPaused, Wait: closed, Waiting: f.Waiting, Lane: l.Key, Reason: throttle.ReasonPause}
	}
	return err
}
