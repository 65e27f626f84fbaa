package lane

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weirgo/weir/throttle"
)

// maxNamed bounds the lanes that one error names.
const maxNamed = 10

// Retune gives every lane the limits that it should have. A lane that is made
// meanwhile asks for its limits again. The error names lanes whose limits do
// not validate or cannot be changed.
func (s *Lanes) Retune() error {
	s.changes.Add(1)
	var errs []error
	failed := 0
	for _, l := range s.All() {
		if err := s.tune(l); err != nil {
			if failed++; failed <= maxNamed {
				errs = append(errs, fmt.Errorf("weir: limits of lane %q: %w", l.Key, err))
			}
		}
	}
	if failed > maxNamed {
		errs = append(errs, fmt.Errorf("weir: limits of %d more lanes", failed-maxNamed))
	}
	return errors.Join(errs...)
}

// Check returns why lanes would not take the limits that limits returns for their keys. It
// changes nothing.
func (s *Lanes) Check(limits func(key string) []throttle.Limit) error {
	var errs []error
	for _, l := range s.All() {
		ordered, err := s.Ordered(*l.limits.Load(), limits(l.Key))
		if err == nil {
			_, err = s.resolver.resolve(ordered)
		}
		if err != nil && len(errs) < maxNamed {
			errs = append(errs, fmt.Errorf("limits of lane %q: %w", l.Key, err))
		}
	}
	return errors.Join(errs...)
}

// tune gives a lane the limits that it should have. If they are changed several
// times at once, the lane gets the latest.
func (s *Lanes) tune(l *Lane) error {
	for {
		changes := s.changes.Load()
		limits := s.settings.Limits(l.Key) // the user's function: not under the lock
		s.tuning.Lock()
		if s.changes.Load() == changes {
			defer s.tuning.Unlock()
			return s.replace(l, limits)
		}
		s.tuning.Unlock()
	}
}

func (s *Lanes) replace(l *Lane, limits []throttle.Limit) error {
	old := l.limits.Load()
	limits, err := s.Ordered(*old, limits)
	if err != nil {
		return err
	}
	resolved, err := s.resolver.resolve(limits)
	if err != nil || slices.Equal(*resolved, *old) {
		return err
	}
	if err := l.Queue.Tune(*resolved...); err != nil {
		return err
	}
	l.limits.Store(resolved)
	for _, b := range s.sublanesOf(l) {
		if b.OfBucket() {
			b.Course.Configure(b.Queue.Now(), *resolved)
		}
	}
	return nil
}

// likenesses say which new limit takes the place of an old one of the same unit: that
// of the same name, or else the first of the same length and algorithm, or else the first.
var likenesses = [...]func(o, l throttle.Limit) bool{
	func(o, l throttle.Limit) bool { return o.Name != "" && o.Name == l.Name },
	func(o, l throttle.Limit) bool { return o.Per == l.Per && o.Algorithm == l.Algorithm },
	func(o, l throttle.Limit) bool { return true },
}

// Ordered returns the limits in the order in which a lane with the old limits has them:
// each has the place of the old one that it replaces, because the costs of requests in
// line are stored by place, and names that nobody gave are made of places. The error says
// why a lane would not take them.
func (s *Lanes) Ordered(old, limits []throttle.Limit) ([]throttle.Limit, error) {
	rest := slices.Clone(limits)
	places := make([]*throttle.Limit, len(old))
	for _, like := range likenesses {
		for i, o := range old {
			j := slices.IndexFunc(rest, func(l throttle.Limit) bool { return unitOf(l) == unitOf(o) && like(o, l) })
			if places[i] == nil && j >= 0 {
				l := rest[j]
				places[i], rest = &l, slices.Delete(rest, j, j+1)
			}
		}
	}
	ordered := make([]throttle.Limit, 0, len(limits))
	for i, l := range places {
		switch {
		case l != nil:
			ordered = append(ordered, *l)
		case s.settings.Priced():
			return nil, fmt.Errorf("fewer limits of %q than before, and requests in line were priced in each", unitOf(old[i]))
		}
	}
	return append(ordered, rest...), nil
}

// maxKnown is how many lists of limits a resolver remembers. There are rarely
// more tiers.
const maxKnown = 16

// A resolved is a list of limits as it was given, with the same list resolved.
type resolved struct{ given, limits []throttle.Limit }

// A resolver resolves lists of limits. The zero value is ready to use. It is
// safe for concurrent use.
type resolver struct {
	mu    sync.Mutex
	known []*resolved // the newest is last
}

// resolve returns the resolved limits. Lanes with the same limits share one
// list, because there may be a million such lanes.
func (r *resolver) resolve(given []throttle.Limit) (*[]throttle.Limit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.known {
		if slices.Equal(k.given, given) {
			return &k.limits, nil
		}
	}
	limits, err := throttle.Resolve(given...)
	if err != nil {
		return nil, err
	}
	if len(r.known) == maxKnown {
		r.known = slices.Delete(r.known, 0, 1)
	}
	k := &resolved{slices.Clone(given), limits}
	r.known = append(r.known, k)
	return &k.limits, nil
}

// unitOf returns the unit of a limit; the zero unit is "requests".
func unitOf(l throttle.Limit) string { return cmp.Or(l.Unit, "requests") }
