package lane

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir/shaping"
)

// A Group is the line of the calls that need the same lanes, each of which has a permit
// for them. It holds no state of its own, so it can be made anew whenever nobody is in it.
type Group struct {
	Line
	members members
	hook    shaping.Hook
	users   atomic.Int64 // calls in it
}

// A roster is a lane's line for groups.
type roster struct {
	*shaping.Roster
	groups map[*Group]bool // that it is in; under the lock of groups
}

// groups are those of one owner, bounded by the number of lanes.
type groups struct {
	junction shaping.Junction

	mu     sync.Mutex
	of     map[members]*Group
	closed bool
}

// members are the lanes of a group, and how many limits each had when the group was made:
// costs of calls in line are stored by the limits' places.
type members struct {
	lanes [shaping.MaxRosters]*Lane
	sizes [shaping.MaxRosters]uint16
}

func membersOf(lanes []*Lane) (m members) {
	for i, l := range lanes {
		m.lanes[i], m.sizes[i] = l, uint16(len(l.Limits())) //nolint:gosec // few
	}
	return m
}

// Join returns the group of some lanes, and of sub-lanes that come last, with the call counted
// in. It is nil for a lane alone, whose line is in its queue. They are at most
// [shaping.MaxRosters], and the caller has entered each of them once. The error says that the
// lanes are closed.
func (s *Lanes) Join(lanes ...*Lane) (*Group, error) {
	if len(lanes) == 1 {
		return nil, nil //nolint:nilnil // there is no group
	}
	s.groups.mu.Lock()
	defer s.groups.mu.Unlock()
	if s.groups.closed {
		return nil, &shaping.Error{Err: shaping.ErrClosed}
	}
	g := s.groups.of[membersOf(lanes)]
	if g == nil {
		g = s.form(lanes)
	}
	g.users.Add(1)
	return g, nil
}

// form makes the group of some lanes, whose limits do not change meanwhile.
func (s *Lanes) form(lanes []*Lane) *Group {
	s.tuning.Lock()
	defer s.tuning.Unlock()
	all := slices.Clone(lanes)
	n := len(all)
	rosters := make([]*shaping.Roster, n)
	for i, l := range slices.Backward(all) {
		made := s.groups.junction.NewRoster
		if l.sub != nil {
			n, made = i, s.groups.junction.NewPart
		}
		if l.roster == nil {
			l.roster = &roster{made(l.name(), l.Queue), make(map[*Group]bool)}
		}
		rosters[i] = l.roster.Roster
	}
	g := &Group{Line: Line{all[:n:n], s.groups.junction.NewQueue(rosters...), all[n:]}, members: membersOf(all)}
	g.Queue.Line = s.settings.Line
	g.hook.Wait = func(ctx context.Context, w shaping.Wait) func(error) { return g.named(w.Lane).waits(ctx, w) }
	g.Queue.Hook = &g.hook
	s.groups.makeRoom(s.settings.MaxLanes)
	s.groups.of[g.members] = g
	for _, l := range all {
		l.roster.groups[g] = true
	}
	return g
}

// makeRoom drops idle groups, if there are as many groups as may be.
func (s *groups) makeRoom(most int) {
	for _, g := range s.of {
		if len(s.of) < most {
			return
		}
		if g.users.Load() == 0 {
			s.drop(g)
		}
	}
}

// drop removes a group in which nobody is.
func (s *groups) drop(g *Group) {
	delete(s.of, g.members)
	for _, l := range slices.Concat(g.Lanes, g.sublanes) {
		delete(l.roster.groups, g)
	}
	_ = g.Queue.Close() // it says nothing else
}

// dropAll drops the groups of a lane, in which nobody is.
func (s *groups) dropAll(of *Lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of.roster == nil {
		return
	}
	for g := range of.roster.groups {
		s.drop(g)
	}
}

func (s *groups) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, g := range s.of {
		_ = g.Queue.Close() // it says nothing else
	}
}

// Leave counts a call out of the group. If it is nil, nobody is in it.
func (g *Group) Leave() {
	if g != nil {
		g.users.Add(-1)
	}
}

// Fits reports whether calls have costs for as many limits of each lane as in another group. A
// lane alone takes them as they are.
func (g *Group) Fits(o *Group) bool {
	return g == nil || o == nil || g.members.sizes == o.members.sizes
}

// Size returns for how many limits of the i-th lane a call has a cost.
func (g *Group) Size(i int) int { return int(g.members.sizes[i]) }
