package weir

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/internal/telemetry"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// enter enters the lane of a key. Before the first lane it makes the metrics.
// It holds no lock meanwhile, because a collector that asks for a Snapshot may
// hold the provider's locks.
func (t *Transport) enter(key string) (*lane.Lane, error) {
	t.metering.Do(func() {
		t.metrics = telemetry.NewMetrics(t.MeterProvider, observed(t.lanes))
		if t.ServerAddress {
			t.metrics.NameServers()
		}
		runtime.AddCleanup(t.lanes, (*telemetry.Metrics).Close, t.metrics)
	})
	return t.lanes.Enter(key)
}

// keyOf returns the key of a request that has one.
func (t *Transport) keyOf(req *http.Request) string {
	if t.Key != nil {
		return t.Key(req)
	}
	if last := t.spoken.Load(); last != nil && last.plain && req.URL != nil && req.URL.Host == last.host {
		return last.host
	}
	return ByHost(req)
}

// settings returns the fields that the lanes need.
func (t *Transport) settings() lane.Settings {
	s := lane.Settings{
		MaxInFlight:       t.InFlight.Max,
		SharedMaxInFlight: t.InFlight.Shared,
		ReservedInFlight:  t.InFlight.Reserve,
		Line:              t.Line,
		MaxPause:          t.maxPause(),
		MaxLanes:          t.maxLanes(),
		Learn:             t.Learn != LearnOff,
		Share:             t.Share,
		Spread:            t.Learn == LearnSpread,
		WaitResets:        t.WaitForReset,
		Store:             t.Store,
		Shadow:            t.Shadow,
		Priced:            func() bool { return t.Cost != nil || t.priced.Load() },
		Limits:            t.limitsFor,
		Budget:            t.Retry.NewBudget,
		Logger:            t.logger,
		Observe:           t.observe,
		Opened:            t.opened,
	}
	if s.Learn {
		s.Recall = t.imported
	}
	if s.Store == nil {
		s.Store = throttle.Local{}
	}
	return s
}

// opened logs an unexpected new lane: one shared by several keys, or one whose key looks like a raw
// path.
func (t *Transport) opened(key string, shared bool) {
	switch {
	case shared:
		t.logger().Warn("weir: more lanes than MaxLanes: further keys share one", "MaxLanes", t.maxLanes())
	case !t.rawKey.Load() && raw(key) && t.rawKey.CompareAndSwap(false, true):
		t.logger().Warn("weir: a lane's key looks like a raw path with an identifier in it: each identifier has a lane, and a quota, of its own; ByRoute keys by template", "like", template(key))
	}
}

// maxPause returns MaxPause or its default.
func (t *Transport) maxPause() time.Duration { return cmp.Or(max(t.MaxPause, 0), DefaultMaxPause) }

// mostWaiting returns Line.MaxWaiting or its default.
func (t *Transport) mostWaiting() int {
	return cmp.Or(max(t.Line.MaxWaiting, 0), shaping.DefaultMaxWaiting)
}

// maxLanes returns MaxLanes or its default.
func (t *Transport) maxLanes() int { return cmp.Or(max(t.MaxLanes, 0), DefaultMaxLanes) }

// Resume opens the lane of a key, for an operator who knows that the server's pause is over. The
// pauses of the lane, of its routes and of its credentials end at once, even those longer than
// MaxPause. The lane's own pause ends, too, in the other processes that share its limits, if the
// Store can reach those. A route or credential that was refused there alone stays paused there, until
// its own key is resumed, as [github.com/weirgo/weir/distributed.Lanes] lists it. If the lane was
// closed, one call departs first, and the others follow its good answer. A lane without a pause is
// unchanged.
//
// The key "" is also that of the lane that keys beyond MaxLanes share. The error is for limits that
// do not validate, or shaping.ErrClosed. Resume is safe for concurrent use.
func (t *Transport) Resume(key string) error {
	return t.relieve("resuming", key, (*lane.Lanes).Resume)
}

// Pause pauses the lane of a key for d, as a refusal that asks for that time does: its requests
// wait, or are rejected with [ErrPaused] if d is longer than MaxPause. Other processes that share
// the lane's limits pause too. Requests in flight are not touched. A pause that ends later stays.
// It is an hour at most.
//
// If keys beyond MaxLanes share the lane, the key's own requests pause alone, and those of another
// process only if the key was paused or refused there, too. The key "" is as for Resume. The error is
// for a d that is not positive, or as that of Resume. Pause is safe for concurrent use.
func (t *Transport) Pause(key string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("weir: pausing lane %q for %v: want a positive time", key, d)
	}
	return t.relieve("pausing", key, func(s *lane.Lanes, l *lane.Lane, _ string) { s.Pause(l, key, d) })
}

// relieve calls do for the lane of a key. The error says for what.
func (t *Transport) relieve(what, key string, do func(*lane.Lanes, *lane.Lane, string)) error {
	t.once.Do(t.init)
	l, err := t.enter(key)
	if err != nil {
		return fmt.Errorf("weir: %s lane %q: %w", what, key, err)
	}
	defer l.Leave(nil)
	do(t.lanes, l, key)
	return nil
}
