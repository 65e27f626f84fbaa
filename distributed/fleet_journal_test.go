package distributed_test

import (
	"slices"
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A journal is all departures, in the order in which they were reported.
type journal struct {
	mu   sync.Mutex
	left []departure
}

func (j *journal) note(d departure) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left = append(j.left, d)
}

func (j *journal) all() []departure {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.left)
}

// instants returns when the selected calls departed, in order.
func (j *journal) instants(of func(departure) bool) []throttle.Instant {
	return j.sorted(of, func(d departure) throttle.Instant { return d.At })
}

// dues returns when the permits of the selected calls were due.
func (j *journal) dues(of func(departure) bool) []throttle.Instant {
	return j.sorted(of, func(d departure) throttle.Instant { return d.Due })
}

func (j *journal) sorted(of func(departure) bool, by func(departure) throttle.Instant) []throttle.Instant {
	var all []throttle.Instant
	for _, d := range j.all() {
		if of(d) {
			all = append(all, by(d))
		}
	}
	slices.Sort(all)
	return all
}

func everybody(departure) bool { return true }

func shared(d departure) bool { return !d.Local }

// count returns how many calls departed in a window.
func (j *journal) count(from, to throttle.Instant) int { return count(j.instants(everybody), from, to) }

// most returns the longest duration that took reports for the selected calls.
func (j *journal) most(took func(departure) time.Duration, of func(departure) bool) time.Duration {
	var most time.Duration
	for _, d := range j.all() {
		if of(d) {
			most = max(most, took(d))
		}
	}
	return most
}

// stray counts departures under the policy for a loss outside of any fault: the machine stopped for
// longer than a store call may take.
func (j *journal) stray(spells []spell) int {
	n := 0
	for _, d := range j.all() {
		if d.Local && !d.foreseen(spells) {
			n++
		}
	}
	return n
}

// foreseen reports whether the replica was cut off at the departure.
func (d departure) foreseen(spells []spell) bool {
	return slices.ContainsFunc(spells, func(s spell) bool { return s.from <= d.At && d.At <= s.to && d.Replica < s.below })
}
