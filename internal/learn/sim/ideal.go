package sim

import (
	"math"
	"time"
)

// trip returns the mean time from a departure to its answer.
func (s *Scenario) trip() time.Duration { return s.serve() + 2*s.oneWay() }

func (s *Scenario) serve() time.Duration {
	if s.ServiceTo > 0 {
		return (s.Service + s.ServiceTo) / 2
	}
	return s.Service
}

func (s *Scenario) oneWay() time.Duration {
	return time.Duration(float64(s.Way) * math.Exp(s.Jitter*s.Jitter/2))
}

// known returns how many calls are served between two instants to a client that always knows what
// is left, and how long they take. Each call departs when the vendor has room and a worker is free.
// Without workers there are enough. The vendor must know when it has room again, so it has no
// [Sliding] window and no [Flight] bound.
func (s *Scenario) known(d *door, from, until int64) (served int, took time.Duration) {
	trip, way := int64(s.trip()), int64(s.oneWay())
	free := make([]int64, s.Workers) // when each worker is free, in the order of their calls
	for now := from + way; ; {
		if wait := d.wait(now); wait > 0 || !d.room(now) {
			now += max(1, int64(wait))
			continue
		}
		if s.Workers > 0 {
			w := &free[served%s.Workers]
			if at := *w + way; at > now {
				now = at
				continue
			}
			*w = now - way + trip
		}
		if now-way+trip > until {
			return served, took
		}
		d.arrive(now)
		served++
		took = time.Duration(now - way + trip - from)
		if s.Calls > 0 && served == s.Calls {
			return served, took
		}
	}
}

// room reports whether a call would be accepted.
func (d *door) room(now int64) bool {
	for _, m := range d.meters {
		if m.left(now) < 1 {
			return false
		}
	}
	return now >= d.blocked
}
