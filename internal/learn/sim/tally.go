package sim

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// A Verdict is the outcome of a draw.
type Verdict struct {
	Draw  Draw
	Used  float64 // served share of the possible calls
	Known float64 // the same for a client that knows the limits; 1 if Used is good
	Early int     // departures before a reported time
	Wrong int     // refused in the judged time
}

// Low and Stuck are shares of the possible calls: below Low a lane wastes too many, and below Stuck
// it is stuck.
const (
	Low   = 0.8
	Stuck = 0.3
)

// Judge plays the draw and judges it.
func (d Draw) Judge() Verdict {
	used, res := d.Play()
	v := Verdict{Draw: d, Used: used, Known: 1, Early: res.Early, Wrong: res.Refused}
	if used < Low {
		v.Known = d.Known()
	}
	return v
}

// A Tally counts verdicts, in all and by group. The zero Tally is empty.
type Tally struct {
	All    Count
	Beside Count // relative to a client that knows the limits
	Groups map[string]map[string]Count
	Used   []float64
	Early  int
	Low    []Verdict
}

// A Count is how many draws were judged, how many of them were low, and how many
// of those were stuck.
type Count struct{ N, Low, Stuck int }

func (c Count) add(used float64) Count {
	c.N++
	if used < Low {
		c.Low++
	}
	if used < Stuck {
		c.Stuck++
	}
	return c
}

func (c Count) String() string {
	return fmt.Sprintf("%5d of %5d below %.1f (%5.1f %%), %3d below %.1f", c.Low, c.N, Low, 100*float64(c.Low)/float64(max(1, c.N)), c.Stuck, Stuck)
}

// Add counts a verdict.
func (t *Tally) Add(v Verdict) {
	if t.Groups == nil {
		t.Groups = map[string]map[string]Count{}
	}
	t.All, t.Beside = t.All.add(v.Used), t.Beside.add(v.Used/v.Known)
	for dimension, value := range v.Draw.Traits() {
		if t.Groups[dimension] == nil {
			t.Groups[dimension] = map[string]Count{}
		}
		t.Groups[dimension][value] = t.Groups[dimension][value].add(v.Used)
	}
	t.Used = append(t.Used, v.Used)
	t.Early += v.Early
	if v.Used < Low {
		t.Low = append(t.Low, v)
	}
}

// Print writes the draws that were low, worst first, then the groups, those with
// most of them first, then the sum.
func (t *Tally) Print(w io.Writer) {
	slices.SortFunc(t.Low, func(a, b Verdict) int { return cmp.Compare(a.Used, b.Used) })
	for _, v := range t.Low {
		fmt.Fprintf(w, "%.3f of %.3f refused %d: %v\n", v.Used, v.Known, v.Wrong, v.Draw)
	}
	for _, dimension := range slices.Sorted(maps.Keys(t.Groups)) {
		groups := t.Groups[dimension]
		names := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
			return cmp.Or(cmp.Compare(groups[b].Low, groups[a].Low), cmp.Compare(a, b))
		})
		for _, name := range names[:min(len(names), 24)] {
			if groups[name].Low > 0 {
				fmt.Fprintf(w, "%v: %s %s\n", groups[name], dimension, name)
			}
		}
	}
	slices.Sort(t.Used)
	share := func(p int) float64 { return t.Used[len(t.Used)*p/100] }
	fmt.Fprintf(w, "%v\n%v beside a client that knows\nserved, of what could be: 1 in 100 %.3f, 5 %.3f, 10 %.3f, median %.3f; %d departures before a reported time\n",
		t.All, t.Beside, share(1), share(5), share(10), share(50), t.Early)
}

// Traits returns the draw's traits by dimension: its vendor's reports, its rules, the one-way time
// beside the rate, and the changes of its limits; and the first, second and last together.
func (d Draw) Traits() map[string]string {
	tells, kinds, change := d.tells(), d.kinds(), d.change()
	way := "way below an interval"
	if each := 1 / d.Rate; d.Run.Way.Seconds() > each {
		way = "way above an interval"
	}
	return map[string]string{
		"together": tells + ", " + kinds + ", " + change,
		"tells":    d.Run.Style.String(),
		"kinds":    kinds,
		"way":      way,
		"change":   change,
		"extra":    d.extra(),
		"window":   d.window(),
	}
}

func (d Draw) tells() string {
	switch s := d.Run.Style; {
	case s == Bare:
		return "nothing"
	case s.Quotas == NoQuotas || s.Lie != Truth:
		return "time"
	}
	return "quotas"
}

func (d Draw) kinds() string {
	if len(d.Run.Vendor.Rules) > 1 {
		return "two"
	}
	return d.Run.Vendor.Rules[0].Kind.String()
}

func (d Draw) change() string {
	switch {
	case len(d.Run.Changes) == 0:
		return "steady"
	case d.Run.Changes[0].Vendor.Rules[0].Permits < d.Run.Vendor.Rules[0].Permits:
		return "down"
	}
	return "up"
}

func (d Draw) extra() string {
	switch v := d.Run.Vendor; {
	case v.Block > 0 && v.RefusalsCount:
		return "blocks, refusals count"
	case v.Block > 0:
		return "blocks"
	case v.RefusalsCount:
		return "refusals count"
	}
	return "plain"
}

// window names the length of the first rule's window, or a bucket's burst.
func (d Draw) window() string {
	switch r := d.Run.Vendor.Rules[0]; {
	case r.Kind == Flight:
		return "in flight"
	case r.Kind != Bucket:
		return fmt.Sprintf("%v", r.Per)
	case r.Burst < 4:
		return fmt.Sprintf("burst %d", r.Burst)
	case time.Duration(float64(r.Burst)/r.PerSecond()*1e9) < 100*time.Millisecond:
		return "burst of less than 100 ms"
	}
	return "burst"
}
