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

// Find returns the lane in which a request of the key would be counted, with the request
// counted in. It makes none: it returns nil if the request's would be a new one. The error
// is shaping.ErrClosed.
func (s *Lanes) Find(key string) (*Lane, error) {
	l, _, err := s.present(key, false)
	return l, err
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
