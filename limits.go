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
	limits = slices.Clone(limits) // the caller may change theirs
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

// maxTold bounds the lanes that one error names.
const maxTold = 10

// retune gives every lane the limits it should have. A lane that is made
// meanwhile asks for its limits again.
func (s *lanes) retune() error {
	s.changes.Add(1)
	var errs []error
	failed := 0
	for _, l := range s.list() {
		if err := s.tune(l); err != nil {
			if failed++; failed <= maxTold {
				errs = append(errs, fmt.Errorf("weir: limits of lane %q: %w", l.key, err))
			}
		}
	}
	if failed > maxTold {
		errs = append(errs, fmt.Errorf("weir: limits of %d lanes more", failed-maxTold))
	}
	return errors.Join(errs...)
}

// tune gives the lane the limits it should have, the latest where they are
// changed by several at a time.
func (s *lanes) tune(l *lane) error {
	for {
		changes := s.changes.Load()
		limits := s.transport.limitsFor(l.key) // the user's function: not under the lock
		s.tuning.Lock()
		latest := s.changes.Load() == changes
		var err error
		if latest {
			err = l.tune(limits)
		}
		s.tuning.Unlock()
		if latest {
			return err
		}
	}
}

func (l *lane) tune(limits []throttle.Limit) error {
	old := l.limits.Load()
	limits, err := l.home.transport.inPlace(*old, limits)
	if err != nil {
		return err
	}
	resolved, err := l.home.resolve(limits)
	if err != nil || slices.Equal(*resolved, *old) {
		return err
	}
	if err := l.queue.Tune(*resolved...); err != nil {
		return err
	}
	l.limits.Store(resolved)
	return nil
}

// maxKnown is how many lists of limits are known at a time: as many as there
// are tiers, usually.
const maxKnown = 16

// A resolved is a list of limits as it was given, and resolved.
type resolved struct {
	given  []throttle.Limit
	limits *[]throttle.Limit // nil: nothing is known
}

// resolve returns the limits resolved. Lanes of the same limits share one list:
// a million lanes need not have a million.
func (s *lanes) resolve(given []throttle.Limit) (*[]throttle.Limit, error) {
	s.resolving.Lock()
	defer s.resolving.Unlock()
	for _, k := range s.known {
		if k.limits != nil && slices.Equal(k.given, given) {
			return k.limits, nil
		}
	}
	limits, err := throttle.Resolve(given...)
	if err != nil {
		return nil, err
	}
	s.known[s.next] = resolved{slices.Clone(given), &limits}
	s.next = (s.next + 1) % maxKnown
	return &limits, nil
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
