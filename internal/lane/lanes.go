package lane

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Lanes are the lanes of one owner, in bounded tables. A lane leaves its table only when it is
// empty, no pause runs, and its limiter is as good as new. So removing a lane never grants permits
// twice. Lanes are safe for concurrent use.
type Lanes struct {
	settings Settings
	keyed    table
	sublanes table
	done     chan struct{}
	changes  atomic.Int64 // number of changes of limits
	draining atomic.Bool  // newcomers are rejected

	tuning sync.Mutex // held to tune one lane at a time

	overflow atomic.Pointer[Lane] // the lane shared by keys beyond the bound; nil: not made yet
	latest   atomic.Pointer[Lane] // the last lane made for a key, found without a look-up; nil: none

	mu     sync.Mutex // held to make and to retire lanes
	closed bool
	gone   []*Lane // to be closed once mu is released

	groups   groups
	resolver resolver
}

// New returns an empty set of lanes.
func New(set Settings) *Lanes {
	return &Lanes{settings: set, keyed: table{keep: idle}, groups: groups{of: make(map[members]*Group)}, done: make(chan struct{})}
}

// Enter returns the lane of a key, or the one that keys beyond the bound share, with the request
// counted in. It makes the lane on first use. The error is for limits that do not validate, or
// shaping.ErrClosed.
func (s *Lanes) Enter(key string) (*Lane, error) {
	if s.draining.Load() {
		return nil, &shaping.Error{Err: shaping.ErrClosed}
	}
	if l := s.latest.Load(); l != nil && l.Key == key && l.enter() {
		return l, nil
	}
	if l := s.keyed.find(key); l != nil && l.enter() {
		return l, nil
	}
	for {
		l, shared, err := s.present(key, true)
		if l == nil && err == nil {
			l, err = s.open(key, shared)
		}
		if l != nil || err != nil {
			return l, err
		}
	}
}

// open makes the lane of a key, or the shared one, with the request counted in. It returns nil if
// something has changed meanwhile. Its defer stays out of Enter, where it would cost each call,
// because there it would be in a loop.
func (s *Lanes) open(key string, shared bool) (*Lane, error) {
	if shared {
		key = ""
	}
	changes := s.changes.Load()
	limits := s.settings.Limits(key) // the user's function: not under the lock
	l, err := s.add(key, limits, shared, changes)
	if l == nil {
		return nil, err
	}
	defer l.Leave(nil) // even if Opened panics
	s.settings.Opened(key, shared)
	l.enter()
	return l, nil
}

// Again enters the lane once more for a call that is over. If the lane is gone,
// it enters the one that its key has now.
func (s *Lanes) Again(l *Lane) (*Lane, error) {
	if l.enter() {
		return l, nil
	}
	return s.Enter(l.Key)
}

// Find returns the lane in which a request of the key would be counted, with the request
// counted in. It makes none: it returns nil if the request's would be a new one. The error
// is shaping.ErrClosed.
func (s *Lanes) Find(key string) (*Lane, error) {
	l, _, err := s.present(key, false)
	return l, err
}

// present returns the existing lane of a key, with the request counted in. If there is none, shared
// reports that there is no room for one, so that the shared lane must be made. It makes room if the
// caller makes lanes.
func (s *Lanes) present(key string, makes bool) (l *Lane, shared bool, err error) {
	s.mu.Lock()
	defer s.unlock()
	if s.closed || s.draining.Load() {
		return nil, false, &shaping.Error{Err: shaping.ErrClosed}
	}
	if l = s.keyed.find(key); l == nil {
		if makes {
			s.room(&s.sublanes) // a lane stays as long as its sub-lanes
			s.room(&s.keyed)
		}
		if s.keyed.n < s.settings.MaxLanes {
			return nil, false, nil
		}
		l = s.overflow.Load()
	}
	if l != nil {
		l.enter() // under the lock no lane is being removed
	}
	return l, l == nil, nil
}

// room reports whether there is room for one more lane in a table. The lanes that make
// room are closed by unlock.
func (s *Lanes) room(t *table) bool {
	ok, gone := t.room(s.settings.MaxLanes)
	s.gone = append(s.gone, gone...)
	return ok
}

// unlock unlocks the lanes, and closes those that are gone: that may take time.
func (s *Lanes) unlock() {
	gone := s.gone
	s.gone = nil
	s.mu.Unlock()
	for _, l := range gone {
		s.groups.dropAll(l)
		_ = l.close() // it was idle: no caller is left for the error
	}
}

// add makes a lane, with the request counted in. It returns nil if something has changed
// since the limits were asked for.
func (s *Lanes) add(key string, limits []throttle.Limit, shared bool, changes int64) (*Lane, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, &shaping.Error{Err: shaping.ErrClosed}
	case s.changes.Load() != changes,
		shared && s.overflow.Load() != nil,
		!shared && (s.keyed.find(key) != nil || s.keyed.n >= s.settings.MaxLanes):
		return nil, nil
	}
	shadow, err := newShadow(s.settings.Shadow, s.settings.Line.MaxWaiting)
	if err != nil {
		return nil, fmt.Errorf("shadow limits: %w", err)
	}
	resolved, err := s.resolver.resolve(limits)
	if err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	l, err := newLane(&s.settings, s.settings.Store, key, key, resolved, s.settings.Learn)
	if err != nil {
		return nil, err
	}
	l.Shadow, l.Shared = shadow, shared
	if err := l.bound(); err != nil {
		return nil, errors.Join(err, l.close())
	}
	if s.settings.Recall != nil {
		if memory := s.settings.Recall(key); memory != nil {
			l.Course.Recall(l.Queue.Now(), *memory)
		}
	}
	l.enter()
	if shared {
		s.overflow.Store(l) // not in the table: its keys have lanes again as soon as there is room
	} else {
		s.keyed.add(l)
		s.latest.Store(l)
	}
	return l, nil
}

// Sublane returns the sub-lane of a part of a lane, with the request counted in. It makes one of
// the kind on first use, except for [Existing]. It returns nil if there is no such sub-lane, or no
// room for one.
func (s *Lanes) Sublane(of *Lane, part string, kind Kind) *Lane {
	if l := s.sublanes.find(sublaneName(of, part)); l == nil && kind == Existing || l != nil && l.enter() {
		return l
	}
	s.mu.Lock()
	defer s.unlock()
	if l := s.sublanes.find(sublaneName(of, part)); l != nil {
		l.enter() // no lane is being removed
		return l
	}
	if kind == Existing || s.closed || !s.room(&s.sublanes) {
		return nil
	}
	var from throttle.Store = throttle.Local{}
	if _, shared := of.Gate.Limiter.(store.Limiter); shared && kind != First {
		from = s.settings.Store
	}
	name := fmt.Sprintf("%s part %x", of.Key, sha256.Sum256([]byte(part))) // a path may name what the store must not show
	l, err := newLane(&s.settings, from, of.Key, name, new([]throttle.Limit), s.settings.Learn && kind != First)
	if err != nil {
		return nil
	}
	l.sub = &sublane{of, part, kind}
	switch {
	case kind == First:
		l.Gate.CloseTo(l.Now())
	case l.Course == nil || of.Course == nil:
	case kind == Bucket:
		l.Course.Adopt(of.Course)
	default:
		l.Course.Follow(of.Course)
	}
	l.enter()
	s.sublanes.add(l)
	return l
}

func (s *Lanes) sublanesOf(of *Lane) (all []*Lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.sublanes.all {
		if l.sub.lane == of {
			all = append(all, l)
		}
	}
	return all
}

// All returns the lanes that hold limits: those of keys, and the shared one.
func (s *Lanes) All() []*Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq(make([]*Lane, 0, s.keyed.n+1), s.Each)
}

// Each calls f with each lane that holds limits, until f returns false. It
// takes no lock, and may leave out lanes that are made or removed meanwhile.
func (s *Lanes) Each(f func(*Lane) bool) {
	if l := s.overflow.Load(); l != nil && !f(l) {
		return
	}
	s.keyed.all(f)
}

// Drain rejects newcomers. Requests already in a lane stay.
func (s *Lanes) Drain() { s.draining.Store(true) }

// Empty reports whether all lanes are empty, and no call counted in flight.
func (s *Lanes) Empty() bool {
	return !slices.ContainsFunc(s.All(), func(l *Lane) bool { return l.Requests() > 0 || l.Gate.InFlight() > 0 })
}

// Done returns a channel that is closed when the lanes are.
func (s *Lanes) Done() <-chan struct{} { return s.done }

// Close ends all lanes, with their lines and limiters. The error joins those of
// the limiters. Calling it again does nothing.
func (s *Lanes) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.Drain()
	close(s.done)
	s.groups.close()
	var errs []error
	end := func(l *Lane) bool {
		errs = append(errs, l.close())
		return true
	}
	s.Each(end) // no lane is made or removed any more
	s.sublanes.all(end)
	return errors.Join(errs...)
}
