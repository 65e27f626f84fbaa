package weir

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// idle is how long an unused lane stays in the table.
const idle = 10 * time.Minute

// lanes is the bounded table of a transport's lanes. A lane leaves it only when
// nobody is in it, no pause runs and its limiter is as good as new, so that
// nothing is granted twice for having been forgotten.
type lanes struct {
	transport *Transport
	table     sync.Map // key -> *lane
	scopes    sync.Map // lane's key, 0, scope -> *lane
	done      chan struct{}

	mu       sync.Mutex // of making and retiring lanes
	count    int        // in table
	narrow   int        // in scopes
	sweptAt  time.Time
	overflow *lane // shared by the keys beyond the bound
	closed   bool
	rawKey   sync.Once
}

func newLanes(t *Transport) *lanes {
	return &lanes{transport: t, done: make(chan struct{}), sweptAt: time.Now()}
}

// enter returns the lane of the key with the request counted in.
func (s *lanes) enter(key string) (*lane, error) {
	for {
		l, err := s.find(key)
		if err != nil {
			return nil, err
		}
		if l.enter() {
			return l, nil
		}
	}
}

// find returns the lane of the key, made on first use, or the one that keys
// beyond the bound share.
func (s *lanes) find(key string) (*lane, error) {
	if v, ok := s.table.Load(key); ok {
		return v.(*lane), nil
	}
	if l := s.sharing(); l != nil {
		return l, nil
	}
	l, err := s.open(key)
	if l == nil && err == nil {
		return s.share()
	}
	return l, err
}

// open makes the lane of the key; nil where there is no room.
func (s *lanes) open(key string) (*lane, error) {
	limits := s.transport.limitsFor(key) // the user's function: not under the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.table.Load(key); ok {
		return v.(*lane), nil
	}
	if s.closed {
		return nil, &shaping.Error{Err: shaping.ErrClosed}
	}
	bound := s.transport.maxLanes()
	if s.count >= bound || time.Since(s.sweptAt) > idle {
		s.sweep()
	}
	if s.count >= bound {
		return nil, nil
	}
	l, err := newLane(s.transport, s.transport.store(), key, limits)
	if err != nil {
		return nil, err
	}
	s.table.Store(key, l)
	s.count++
	if raw(key) {
		s.rawKey.Do(func() {
			s.transport.logger().Warn("weir: a lane's key looks like a raw path with an identifier in it: each identifier has a lane, and a quota, of its own; ByRoute keys by template", "like", template(key))
		})
	}
	return l, nil
}

// retrySweep is how long a full table stays full before it is swept again:
// keys beyond the bound would otherwise have it swept for each of them.
const retrySweep = time.Second

// sharing returns the overflow lane where a sweep has just left no room.
func (s *lanes) sharing() *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count < s.transport.maxLanes() || time.Since(s.sweptAt) > retrySweep {
		return nil
	}
	return s.overflow
}

// share returns the overflow lane. It stays out of the table: its keys have
// lanes again as soon as there is room.
func (s *lanes) share() (*lane, error) {
	limits := s.transport.limitsFor("")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overflow == nil {
		l, err := newLane(s.transport, s.transport.store(), "", limits)
		if err != nil {
			return nil, err
		}
		s.overflow = l
		s.transport.logger().Warn("weir: more lanes than MaxLanes: further keys share one", "MaxLanes", s.transport.maxLanes())
	}
	return s.overflow, nil
}

// sweep retires the lanes that have been idle for long, and where that leaves
// no room the least recently used eighth of those that may go.
func (s *lanes) sweep() {
	s.sweptAt = time.Now()
	s.count = sweepTable(&s.table, s.count, s.transport.maxLanes())
	s.narrow = sweepTable(&s.scopes, s.narrow, s.transport.maxLanes())
}

func sweepTable(table *sync.Map, count, bound int) int {
	type candidate struct {
		key  any
		lane *lane
		used int64
	}
	var all []candidate
	for key, v := range table.Range {
		if l := v.(*lane); l.users.Load() == 0 {
			all = append(all, candidate{key, l, l.used.Load()})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.used, b.used) })
	room := max(1, bound/8)
	old := int64(throttle.InstantOf(time.Now().Add(-idle)))
	for _, c := range all {
		if c.used > old && count <= bound-room {
			break
		}
		if c.lane.retire(c.used <= old) {
			table.Delete(c.key)
			c.lane.close()
			count--
		}
	}
	return count
}

// scoped returns the scoped lane with the request counted in; nil where there
// is none.
func (s *lanes) scoped(l *lane, scope string) *lane {
	if v, ok := s.scopes.Load(l.key + "\x00" + scope); ok && v.(*lane).enter() {
		return v.(*lane)
	}
	return nil
}

// scope returns the scoped lane, made on first use with the request counted in;
// nil where there are too many.
func (s *lanes) scope(l *lane, scope string) *lane {
	key := l.key + "\x00" + scope
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.scopes.Load(key); ok && v.(*lane).enter() {
		return v.(*lane)
	}
	if s.narrow >= s.transport.maxLanes() {
		s.sweep()
	}
	if s.closed || s.narrow >= s.transport.maxLanes() {
		return nil
	}
	// What it holds is one pause, which the store's limiter of l could not
	// tell from its own.
	made, err := newLane(s.transport, throttle.Local{}, l.key, nil)
	if err != nil {
		return nil
	}
	made.enter()
	s.scopes.Store(key, made)
	s.narrow++
	l.scoped.Add(1)
	return made
}

// all returns the lanes that hold limits: those of keys, and the overflow.
func (s *lanes) all() []*lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*lane, 0, s.count+1)
	for _, v := range s.table.Range {
		all = append(all, v.(*lane))
	}
	if s.overflow != nil {
		all = append(all, s.overflow)
	}
	return all
}

func (s *lanes) close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	close(s.done)
	var errs []error
	for _, l := range s.all() {
		errs = append(errs, l.close())
	}
	for _, v := range s.scopes.Range {
		errs = append(errs, v.(*lane).close())
	}
	return errors.Join(errs...)
}
