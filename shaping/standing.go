package shaping

import (
	"cmp"
	"slices"
	"strings"
)

// A Standing is how many callers of one class and tenant stand in a line.
type Standing struct {
	Priority Priority
	Tenant   string // "": callers that name none
	Waiting  int
}

// Standings returns who stands in line, the most callers first. It looks at every tenant that
// has a caller in line, under the queue's lock. It is nil for an empty line.
func (q *Queue) Standings() []Standing {
	if r := q.roster(); r != nil {
		return sorted(r.standings())
	}
	return sorted(q.standings())
}

func (q *Queue) standings() (all []Standing) {
	if !q.busy.Load() {
		return nil
	}
	q.lock()
	for _, c := range q.line.classes {
		for _, t := range c.tenants {
			s := Standing{Priority: c.priority, Waiting: t.waiting.Len()}
			if t.name != nil {
				s.Tenant = *t.name
			}
			all = append(all, s)
		}
	}
	q.unlock()
	return all
}

// standings is [Queue.Standings] of the queues whose first caller waits for the limiter.
func (r *Roster) standings() (all []Standing) {
	var queues []*Queue
	r.junction.mu.Lock()
	for _, of := range r.heads {
		if of.waitsIn(r) {
			queues = append(queues, of.queue)
		}
	}
	r.junction.mu.Unlock()
	for _, q := range queues {
		all = append(all, q.standings()...)
	}
	return all
}

// sorted returns standings with those of one class and tenant joined, the most callers first.
func sorted(all []Standing) []Standing {
	slices.SortFunc(all, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.Tenant, b.Tenant))
	})
	joined := all[:0]
	for _, s := range all {
		if n := len(joined) - 1; n >= 0 && joined[n].Priority == s.Priority && joined[n].Tenant == s.Tenant {
			joined[n].Waiting += s.Waiting
			continue
		}
		joined = append(joined, s)
	}
	slices.SortStableFunc(joined, func(a, b Standing) int { return cmp.Compare(b.Waiting, a.Waiting) })
	return joined
}
