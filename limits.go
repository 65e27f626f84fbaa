package weir

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/weirgo/weir/throttle"
)

// SetLimits replaces Limits while running, in every lane and for lanes to
// come. Everybody in line is timed anew, faster or slower; what was used stays
// used, and nothing is granted for the change. Where LimitsFor names limits of
// its own for a key, they stay. With Cost set every unit that was limited must
// go on to be, for requests in line were priced in it. The error says what does
// not validate, and then nothing has changed, or which lane's limiter cannot be
// tuned.
func (t *Transport) SetLimits(limits ...throttle.Limit) error {
	t.once.Do(t.init)
	if _, err := throttle.Resolve(limits...); err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	if _, err := t.inPlace(*t.limits.Load(), limits); err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	t.limits.Store(&limits)
	return t.lanes.retune()
}

// Reload asks LimitsFor again for every lane, and tunes those whose limits
// have changed. A lane whose new limits do not validate keeps its own; the
// error names it.
func (t *Transport) Reload() error {
	t.once.Do(t.init)
	return t.lanes.retune()
}

// limitsFor returns the limits of a lane as they are now.
func (t *Transport) limitsFor(key string) []throttle.Limit {
	if t.LimitsFor != nil {
		if limits := t.LimitsFor(key); len(limits) > 0 {
			return limits
		}
	}
	return *t.limits.Load()
}

// retune gives every lane the limits it should have.
func (s *lanes) retune() error {
	var errs []error
	for _, l := range s.all() {
		errs = append(errs, l.tune(s.transport))
	}
	return errors.Join(errs...)
}

// tune gives the lane the limits it should have.
func (l *lane) tune(t *Transport) error {
	limits, err := t.inPlace(*l.limits.Load(), t.limitsFor(l.key))
	if err != nil {
		return fmt.Errorf("weir: limits of lane %q: %w", l.key, err)
	}
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		return fmt.Errorf("weir: limits of lane %q: %w", l.key, err)
	}
	if slices.Equal(resolved, *l.limits.Load()) {
		return nil
	}
	if err := l.queue.Tune(limits...); err != nil {
		return fmt.Errorf("weir: limits of lane %q: %w", l.key, err)
	}
	l.limits.Store(&resolved)
	return nil
}

// inPlace returns the limits in an order in which each unit stands where it
// stood, for the costs of requests in line are told by place. Without Cost all
// places cost the same.
func (t *Transport) inPlace(old, limits []throttle.Limit) ([]throttle.Limit, error) {
	if t.Cost == nil {
		return limits, nil
	}
	rest := slices.Clone(limits)
	ordered := make([]throttle.Limit, 0, len(limits))
	for _, o := range old {
		i := slices.IndexFunc(rest, func(l throttle.Limit) bool { return unitOf(l) == unitOf(o) })
		if i < 0 {
			return nil, fmt.Errorf("no limit of %q is left, in which requests were priced", unitOf(o))
		}
		ordered, rest = append(ordered, rest[i]), slices.Delete(rest, i, i+1)
	}
	return append(ordered, rest...), nil
}

func unitOf(l throttle.Limit) string { return cmp.Or(l.Unit, "requests") }
