package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A Goal bounds a row's measurements. A zero field is not judged.
type Goal struct {
	Wall         float64 // most multiple of the ideal
	Used         float64 // least share of the possible calls
	RefusedShare float64 // refused, a share of served and refused, at most
	Refused      int     // most in the run
	Back         float64 // seconds from the last change until all is well, at most
	Probes       int     // most refused probes in a row in one silence
	First        bool    // first refusals at most max(20, half of what was accepted)
}

// A Row is one scenario of the table with its goals.
type Row struct {
	Name    string
	Run     Scenario
	Ideal   time.Duration // of a drain bounded in flight; zero: the time of a client that knows what is left
	Rate    float64       // possible calls per second since Run.From, and after the last change; zero: as many as are known to be left
	Bare    bool          // the possible calls are those served to a client without learner
	Gate    Goal
	Stretch Goal
}

// A Score is a row's measurements with one seed.
type Score struct {
	Wall, Used, RefusedShare, Back float64
	Refused                        int
	P99                            time.Duration
	First, Accepted, Early, Probes int
}

// Play runs the row with a seed.
func (r Row) Play(seed uint64) Score {
	res := Run(r.Run, seed)
	s := Score{Refused: res.All, P99: res.P99, First: res.First, Accepted: res.Accepted, Early: res.Early, Probes: res.Probes}
	if r.Run.Calls > 0 {
		ideal := r.Ideal
		if ideal == 0 {
			_, ideal = r.Run.known(newDoor(r.Run.Vendor, res.start), res.start, math.MaxInt64)
		}
		s.Wall = res.Wall.Seconds() / ideal.Seconds()
	}
	if n := res.Served + res.Refused; n > 0 {
		s.RefusedShare = float64(res.Refused) / float64(n)
	}
	could := r.Rate * (min(res.Wall, r.Run.Until) - r.Run.From).Seconds()
	if r.Bare {
		plain := r.Run
		plain.NoLearner = true
		could = float64(Run(plain, seed).Served)
	}
	if r.Rate == 0 && !r.Bare && r.Run.Calls == 0 {
		n, _ := r.Run.known(res.door, res.start+int64(r.Run.From), res.start+int64(r.Run.Until))
		could = float64(n)
	}
	if could > 0 {
		s.Used = float64(res.Served) / max(1, could-float64(res.Strange))
	}
	if len(r.Run.Changes) > 0 {
		last := r.Run.Changes[len(r.Run.Changes)-1].At
		s.Back = back(res, last, r.Rate)
	}
	return s
}

// back returns the seconds from the change until at least nine tenths of the rate are served and at
// most 3 % refused, over a second or twenty calls.
func back(res Result, change time.Duration, rate float64) float64 {
	length := max(1, 20/rate)
	n := int(length / res.BinLen.Seconds())
	from := int(change / res.BinLen)
	for i := from; i+n <= len(res.Bins); i++ {
		served, refused := 0, 0
		for _, b := range res.Bins[i : i+n] {
			served, refused = served+b.Served+b.Strange, refused+b.Refused
		}
		if float64(served) >= 0.9*rate*length && float64(refused) <= 0.03*float64(served)+1 {
			return float64(i-from) * res.BinLen.Seconds()
		}
	}
	return math.Inf(1)
}

// Misses returns the bounds in which the goal is missed.
func (g Goal) Misses(s Score) []string {
	var m []string
	if g.Wall > 0 && s.Wall > g.Wall {
		m = append(m, "wall")
	}
	if g.Used > 0 && s.Used < g.Used {
		m = append(m, "used")
	}
	if g.RefusedShare > 0 && s.RefusedShare > g.RefusedShare {
		m = append(m, "share")
	}
	if g.Refused > 0 && s.Refused > g.Refused {
		m = append(m, "429s")
	}
	if g.Back > 0 && s.Back > g.Back {
		m = append(m, "back")
	}
	if g.Probes > 0 && s.Probes > g.Probes {
		m = append(m, "probes")
	}
	if g.First && s.First > max(20, s.Accepted/2) {
		m = append(m, "first")
	}
	if s.Early > 0 {
		m = append(m, "EARLY")
	}
	return m
}

// Summary is a row's outcome over seeds.
type Summary struct {
	Row           Row
	Median, Worst Score
	Gate          []string // bounds missed by the median
	GateWorst     []string // bounds missed by the worst
	Stretch       []string
}

// Summarize judges the scores, field by field.
func (r Row) Summarize(scores []Score) Summary {
	pick := func(get func(Score) float64, high bool) (median, worst float64) {
		v := make([]float64, len(scores))
		for i, s := range scores {
			v[i] = get(s)
		}
		slices.Sort(v)
		worst = v[0]
		if high {
			worst = v[len(v)-1]
		}
		return v[len(v)/2], worst
	}
	var s Summary
	s.Row = r
	fields := []struct {
		get  func(Score) float64
		high bool
		put  func(*Score, float64)
	}{
		{func(s Score) float64 { return s.Wall }, true, func(s *Score, v float64) { s.Wall = v }},
		{func(s Score) float64 { return s.Used }, false, func(s *Score, v float64) { s.Used = v }},
		{func(s Score) float64 { return s.RefusedShare }, true, func(s *Score, v float64) { s.RefusedShare = v }},
		{func(s Score) float64 { return s.Back }, true, func(s *Score, v float64) { s.Back = v }},
		{func(s Score) float64 { return float64(s.Refused) }, true, func(s *Score, v float64) { s.Refused = int(v) }},
		{func(s Score) float64 { return float64(s.P99) }, true, func(s *Score, v float64) { s.P99 = time.Duration(v) }},
		{func(s Score) float64 { return float64(s.First) }, true, func(s *Score, v float64) { s.First = int(v) }},
		{func(s Score) float64 { return float64(s.Accepted) }, false, func(s *Score, v float64) { s.Accepted = int(v) }},
		{func(s Score) float64 { return float64(s.Early) }, true, func(s *Score, v float64) { s.Early = int(v) }},
		{func(s Score) float64 { return float64(s.Probes) }, true, func(s *Score, v float64) { s.Probes = int(v) }},
	}
	for _, f := range fields {
		m, w := pick(f.get, f.high)
		f.put(&s.Median, m)
		f.put(&s.Worst, w)
	}
	s.Median.Early = s.Worst.Early // never, not by one seed
	s.Gate, s.GateWorst = r.Gate.Misses(s.Median), r.Gate.Misses(s.Worst)
	s.Stretch = r.Stretch.Misses(s.Median)
	return s
}

// String formats the goal as a line of the table does.
func (g Goal) String() string {
	var b []string
	add := func(ok bool, format string, v ...any) {
		if ok {
			b = append(b, fmt.Sprintf(format, v...))
		}
	}
	add(g.Wall > 0, "wall %.2f", g.Wall)
	add(g.Used > 0, "used %.2f", g.Used)
	add(g.RefusedShare > 0, "%.1f%%", 100*g.RefusedShare)
	add(g.Refused > 0, "%d", g.Refused)
	add(g.Back > 0, "back %.0fs", g.Back)
	add(g.Probes > 0, "%d probes", g.Probes)
	add(g.First, "first")
	return strings.Join(b, " ")
}

// String formats the summary as a line of the table.
func (s Summary) String() string {
	m, w := s.Median, s.Worst
	verdict := "hit"
	switch {
	case len(s.Gate) > 0:
		verdict = "MISS " + strings.Join(s.Gate, ",")
	case len(s.Stretch) == 0:
		verdict = "stretch"
	}
	if len(s.Gate) == 0 && len(s.GateWorst) > 0 {
		verdict += " (worst misses " + strings.Join(s.GateWorst, ",") + ")"
	}
	two := func(format string, a, b float64) string {
		if a == 0 && b == 0 {
			return "-"
		}
		return fmt.Sprintf(format+";"+format, a, b)
	}
	return fmt.Sprintf("%-34s %-11s %-11s %9s %-13s %9s %5d %-12s %-26s %s", s.Row.Name,
		two("%.2f", m.Wall, w.Wall), two("%.3f", m.Used, w.Used),
		fmt.Sprintf("%d;%d", m.Refused, w.Refused), two("%.2f%%", 100*m.RefusedShare, 100*w.RefusedShare),
		fmt.Sprintf("%d/%d", m.First, m.Accepted),
		m.P99.Milliseconds(), two("%.1f", m.Back, w.Back), s.Row.Gate, verdict)
}

// Header is the line above the table.
const Header = "row                                wall        used             429s share             first   p99 back         gate                       verdict"
