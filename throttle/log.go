package throttle

import (
	"cmp"
	"slices"
)

// A log enforces a sliding log: so many permits in any span of the length,
// exactly. It remembers the last permits spent, as many as there are, in runs
// that left at one instant: the next n may go when the n-th of them is older
// than the span.
type log struct {
	counting
	runs []run // in order of their instants; those before head are forgotten
	head int
	kept int64   // permits in the runs
	gone Instant // instant of the youngest permit forgotten
}

type run struct {
	at Instant
	n  int64
}

func newLog(l Limit) *log {
	return &log{counting: countingOf(l), gone: minInstant}
}

func (g *log) live() []run { return g.runs[g.head:] }

func (g *log) earliest(_ asking, n int64) Instant {
	return max(g.opens(n), g.spacing.earliest())
}

// opens returns when the permits that stand in the way of n more have left the
// span.
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

func (g *log) spend(a asking, charged Instant, n int64) Instant {
	g.charge(a.now, n)
	g.spacing.spend(a.now, charged, n)
	return charged
}

func (g *log) charge(now Instant, n int64) {
	n = min(n, maxCount)
	live := g.live()
	if last := len(live) - 1; last >= 0 && live[last].at >= now {
		live[last].n += n // a clock read out of order stays that long
	} else {
		g.push(run{now, n})
	}
	g.kept += n
	g.trim()
}

// push appends a run, in the room of the forgotten ones where they are half.
func (g *log) push(r run) {
	if g.head > len(g.runs)/2 && len(g.runs) == cap(g.runs) {
		g.runs = g.runs[:copy(g.runs, g.live())]
		g.head = 0
	}
	g.runs = append(g.runs, r)
}

// trim forgets all but the last permits.
func (g *log) trim() {
	for g.kept > g.permits {
		r := &g.runs[g.head]
		drop := min(r.n, g.kept-g.permits)
		g.gone = r.at
		g.kept -= drop
		if r.n -= drop; r.n == 0 {
			g.head++
		}
	}
}

func (g *log) overspend(now Instant, n int64) { g.charge(now, n) }

func (g *log) refund(_, at Instant, n int64) { g.relieve(at, at, n) }

// relieve takes back the first permits that left from at on: that which is
// taken back left then or later, so the log stays on the strict side.
func (g *log) relieve(_, at Instant, n int64) {
	if at <= g.gone {
		return
	}
	g.spacing.relieve(n)
	live := g.live()
	i, _ := slices.BinarySearchFunc(live, at, func(r run, at Instant) int { return cmp.Compare(r.at, at) })
	from := i
	for ; i < len(live) && n > 0; i++ {
		back := min(live[i].n, n)
		live[i].n -= back
		g.kept -= back
		n -= back
	}
	if i > from && live[i-1].n > 0 {
		i--
	}
	g.runs = slices.Delete(g.runs, g.head+from, g.head+i)
}

func (g *log) pause(_, until Instant) {
	if g.limit.slowed() {
		g.space(until, until.Add(g.limit.Per), g.permits)
	}
}

func (g *log) whole(now Instant) bool { return g.used(now) == 0 && g.spacing.over(now) }

func (g *log) used(now Instant) int64 {
	used := int64(0)
	for _, r := range slices.Backward(g.live()) {
		if r.at.Add(g.limit.Per) <= now {
			break
		}
		used += r.n
	}
	return used
}

// adopt keeps what left in the last span, and counts as leaving now what
// another rule had used.
func (g *log) adopt(now, _ Instant, old rule) {
	if was, ok := old.(*log); ok {
		g.runs, g.kept = slices.Clone(was.live()), was.kept
		// What had left the old span is not counted in a longer one.
		if was.gone.Add(was.limit.Per) > now {
			g.gone = was.gone
		}
		g.trim()
	} else if used := old.used(now); used > 0 {
		g.charge(now, used)
	}
	evenly := spaced(now, now.Add(g.limit.Per), g.permits)
	g.spacing = spacedChange(evenly, now, g.permits-g.used(now), old)
}

func (g *log) state(now Instant) LimitState {
	return g.tell(now, g.earliest(asking{now: now, line: Never}, 1), g.used(now))
}
