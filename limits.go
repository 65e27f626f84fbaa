package weir

import (
	"fmt"
	"slices"

	"github.com/weirgo/weir/throttle"
)

// SetLimits replaces Limits while running, in every lane and for lanes to come. All requests in
// line are re-timed, faster or slower. Used permits stay used, and the change grants nothing. If
// LimitsFor returns limits for a key, those stay. If Cost is set, every unit that was limited must
// still be limited, because requests in line were priced in it.
//
// If limits do not validate, the error says why, and nothing has changed. If a
// lane's limiter cannot be tuned, the error names the lane. SetLimits is safe
// for concurrent use.
func (t *Transport) SetLimits(limits ...throttle.Limit) error {
	t.once.Do(t.init)
	limits = slices.Clone(limits) // the caller may change theirs
	if _, err := throttle.Resolve(limits...); err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	old := *t.limits.Load()
	if _, err := throttle.Resolve(old...); err != nil {
		old = nil // no lane has them, and no request was priced in them
	}
	if _, err := t.lanes.Ordered(old, limits); err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	t.limits.Store(&limits)
	return t.lanes.Retune()
}

// Reload asks LimitsFor again for every lane, and tunes the lanes whose limits
// have changed. A lane whose new limits do not validate keeps its old ones; the
// error names it. Reload is safe for concurrent use.
func (t *Transport) Reload() error {
	t.once.Do(t.init)
	return t.lanes.Retune()
}

// limitsFor returns the current limits of a lane.
func (t *Transport) limitsFor(key string) (limits []throttle.Limit) {
	if limits = t.ownLimits(t.applied.plan.Load(), key); len(limits) == 0 {
		limits = *t.limits.Load()
	}
	if slices.ContainsFunc(limits, ofOtherUnit) {
		t.units.Store(true)
	}
	return limits
}

// warnOfUnits logs the first limit of another unit than requests for which neither Cost nor
// the call's context states a cost: the call then costs one permit of it.
func (c *call) warnOfUnits(limits []throttle.Limit, byUnit map[string]int) {
	if c.t.Cost != nil || c.options.cost > 0 {
		return
	}
	for i := range limits {
		if !ofOtherUnit(limits[i]) {
			continue
		}
		if _, stated := byUnit[limits[i].Unit]; !stated && c.t.warned.CompareAndSwap(false, true) {
			c.t.logger().Warn("weir: a limit counts another unit than requests, and Cost is nil: each request costs one of it, unless WithCost, WithCostOf or Track says otherwise", "limit", limits[i].String())
		}
	}
}

// ofOtherUnit reports whether a limit counts another unit than requests.
func ofOtherUnit(l throttle.Limit) bool { return l.Unit != "" && l.Unit != "requests" }
