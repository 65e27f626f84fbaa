package throttle

import (
	"cmp"
	"slices"
)

// A log enforces a sliding log: it grants a number of permits in any span of
// its length, exactly. It remembers as many departures as it grants permits.
// Permits that left at the same instant are one run. The next n permits may go
// when the n-th oldest of those remembered is older than the span.
//
// A million permits may be a million runs, and a lock is held. So runs are only
// walked over to forget them. A run that was taken back stays as an empty one,
// until half of the runs are empty. The first and the last run are never empty.
type log struct {
	counting
	runs  []run // in the order of their instants; those before head are forgotten
	head  int
	empty int     // number of empty runs
	kept  int64   // permits in the runs
	gone  Instant // instant of the youngest permit that was forgotten

	past     int   // the runs before this index had left the span when used was last asked
	pastKept int64 // permits in those runs
}

// A run is permits that left at the same instant.
type run struct {
	at Instant
	n  int64
}

// newLog returns the rule of a limit, with no departures.
func newLog(l Limit) *log {
	return &log{counting: countingOf(l), gone: minInstant}
}

// live returns the runs that are remembered.
func (g *log) live() []run { return g.runs[g.head:] }

// earliest returns when n permits fit the span and the spacing lets them go.
func (g *log) earliest(a asking, n int64) Instant {
	return max(g.opens(n+a.leave), g.spacing.earliest())
}

// opens returns when the permits that prevent n more have left the span.
func (g *log) opens(n int64) Instant {
	way := g.kept - g.permits + n
	at := g.gone
	for _, r := range g.live() {
		if way <= 0 {
			break
		}
		at, way = r.at, way-r.n
	}
	if at == minInstant {
		return at
	}
	return at.Add(g.limit.Per)
}

// spend counts the permits at the departure.
func (g *log) spend(a asking, charged Instant, n int64) Instant {
	g.charge(a.now, n)
	g.spacing.spend(a.now, charged, n)
	return charged
}

// charge adds n permits at now. If now is earlier than the last run, because a
// clock was read out of order, they join that run.
func (g *log) charge(now Instant, n int64) {
	n = min(n, maxCount)
	live := g.live()
	if last := len(live) - 1; last >= 0 && live[last].at >= now {
		live[last].n += n // a clock read out of order stays that long
		if g.past == len(g.runs) {
			g.pastKept += n
		}
	} else {
		g.push(run{now, n})
	}
	g.kept += n
	g.trim()
}

// push appends a run. It reuses the room of forgotten runs if they are more
// than half.
func (g *log) push(r run) {
	if g.head > len(g.runs)/2 && len(g.runs) == cap(g.runs) {
		g.runs = g.runs[:copy(g.runs, g.live())]
		g.past, g.head = g.past-g.head, 0
	}
	g.runs = append(g.runs, r)
}

// trim forgets all permits but the last ones.
func (g *log) trim() {
	for g.kept > g.permits {
		g.gone = g.runs[g.head].at
		g.drop(g.head, g.kept-g.permits)
		g.tidy()
	}
}

// drop takes up to n permits out of run i, and returns how many it took.
func (g *log) drop(i int, n int64) int64 {
	r := &g.runs[i]
	n = min(r.n, n)
	if r.n -= n; r.n == 0 && n > 0 {
		g.empty++
	}
	if i < g.past {
		g.pastKept -= n
	}
	g.kept -= n
	return n
}

// tidy forgets empty runs at both ends, and all empty runs if they are more
// than half.
func (g *log) tidy() {
	for len(g.live()) > 0 && g.runs[g.head].n == 0 {
		g.head++
		g.empty--
	}
	for len(g.live()) > 0 && g.runs[len(g.runs)-1].n == 0 {
		g.runs = g.runs[:len(g.runs)-1]
		g.empty--
	}
	g.past = min(max(g.past, g.head), len(g.runs))
	if g.empty > len(g.live())/2 {
		g.compact()
	}
}

// compact removes all empty runs.
func (g *log) compact() {
	isEmpty := func(r run) bool { return r.n == 0 }
	past := slices.DeleteFunc(g.runs[g.head:g.past:g.past], isEmpty)
	counting := slices.DeleteFunc(g.runs[g.past:], isEmpty)
	g.runs = append(g.runs[:g.head+len(past)], counting...)
	g.past, g.empty = g.head+len(past), 0
}

func (g *log) overspend(now Instant, n int64) { g.charge(now, n) }

func (g *log) refund(_, at Instant, n int64) { g.relieve(at, at, n) }

// relieve takes back the first permits that left at the instant at or after it.
// The permits to be taken back left then or later, so the log stays on the
// strict side.
func (g *log) relieve(_, at Instant, n int64) {
	if at <= g.gone {
		return
	}
	g.spacing.relieve(n)
	i, _ := slices.BinarySearchFunc(g.live(), at, func(r run, at Instant) int { return cmp.Compare(r.at, at) })
	for i += g.head; i < len(g.runs) && n > 0; i++ {
		n -= g.drop(i, n)
	}
	g.tidy()
}

func (g *log) whole(now Instant) bool { return g.used(now) == 0 && g.spacing.over(now) }

// used moves past to the first run that counts now. It moves back if it is
// asked about an earlier instant, or after the span became longer.
func (g *log) used(now Instant) int64 {
	left := func(i int) bool { return g.runs[i].at.Add(g.limit.Per) <= now }
	for ; g.past < len(g.runs) && left(g.past); g.past++ {
		g.pastKept += g.runs[g.past].n
	}
	for ; g.past > g.head && !left(g.past-1); g.past-- {
		g.pastKept -= g.runs[g.past-1].n
	}
	return g.kept - g.pastKept
}

// adopt keeps the departures of the last span. Permits that another rule had used count as leaving
// now. If the other rule is a log, its runs are taken from it.
func (g *log) adopt(now, _ Instant, old rule) {
	before := old.state(now)
	if was, ok := old.(*log); ok {
		for was.used(now); was.head < was.past; was.tidy() {
			was.drop(was.head, was.runs[was.head].n)
		}
		g.runs, g.head, g.empty, g.kept = was.runs, was.head, was.empty, was.kept
		g.past, g.pastKept = was.past, was.pastKept
		was.runs = nil
		// Permits that had left the old span are not counted in a longer one.
		if was.gone.Add(was.limit.Per) > now {
			g.gone = was.gone
		}
		g.trim()
		g.shrink()
	} else if used := old.used(now); used > 0 {
		g.charge(now, used)
	}
	evenly := spaced(now, now.Add(g.limit.Per), g.permits)
	g.spacing = spacedChange(evenly, now, g.permits-g.used(now), before)
}

// shrink frees memory if there were many more runs than there are now.
func (g *log) shrink() {
	if live := g.live(); len(live) < cap(g.runs)/8 {
		g.past -= g.head
		g.runs, g.head = slices.Clone(live), 0
	}
}

// apart returns a copy of r that can be adopted while another rule adopts r
// too.
func apart(r rule) rule {
	g, ok := r.(*log)
	if !ok {
		return r
	}
	other := *g
	other.runs = slices.Clone(g.runs)
	return &other
}

// state returns what is left of the span that ends now.
func (g *log) state(now Instant) LimitState {
	return g.report(now, g.earliest(asking{now: now, line: Never}, 1), g.used(now))
}
