package sim

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// FreshSeed is the first seed of the random vendors that nothing is fitted to. Seeds from 1 on are
// for development.
const FreshSeed = 1_000_000

// mostRefused ends a lost run, to save time.
const mostRefused = 5000

// RandomReporting draws a vendor that reports on every answer what is left.
func RandomReporting(seed uint64) Draw {
	rng := rand.New(rand.NewPCG(seed, 0x7265706f))
	logUniform := func(lo, hi float64) float64 { return lo * math.Exp(rng.Float64()*math.Log(hi/lo)) }
	d := Draw{Seed: seed}
	s := &d.Run
	if s.Way = 50 * time.Microsecond; rng.IntN(4) > 0 {
		s.Way = time.Duration(logUniform(0.1, 200) * 1e6)
	}
	s.Jitter = 0.1 + 0.7*rng.Float64()
	if rng.IntN(4) > 0 {
		s.Service = time.Duration(logUniform(1, 200) * 1e6)
		s.Exponential = rng.IntN(2) == 0
	}
	s.Workers = int(logUniform(1, 257))
	windows := []time.Duration{1, 10, 60, 600, 3600}
	rule := func() Rule {
		if rng.IntN(2) == 0 {
			return Rule{Kind: Bucket, Permits: int(logUniform(5, 1001)), Per: time.Second, Burst: int(logUniform(3, 501))}
		}
		per := windows[rng.IntN(len(windows))] * time.Second
		kinds := []Kind{Fixed, FirstUse, Log}
		return Rule{Kind: kinds[rng.IntN(len(kinds))], Permits: int(logUniform(10, min(5000, 1000*per.Seconds()))), Per: per}
	}
	s.Vendor.Rules = []Rule{rule()}
	if rng.IntN(8) == 0 {
		s.Vendor.Rules = append(s.Vendor.Rules, rule())
	}
	s.Style = Style{
		Retry: Retry(rng.IntN(3)), Quotas: Tightest + Quotas(rng.IntN(3)), Limit: Limit(rng.IntN(3)),
		Reset: Reset(rng.IntN(4)), Round: []Round{Exact, Secs, InEpoch}[rng.IntN(3)],
	}
	s.From = max(time.Second, 3*s.trip())
	s.Until = 30 * time.Second
	d.Rate = float64(s.Workers) / s.trip().Seconds()
	for _, r := range s.Vendor.Rules {
		d.Rate = min(d.Rate, r.PerSecond())
		if r.Kind != Bucket {
			s.Until = max(s.Until, 3*r.Per)
		}
	}
	s.Refusals = mostRefused
	return d
}

// JudgeReporting plays a draw of [RandomReporting]. Used is relative to a client that knows what is
// left, served from Run.From on, and starts with the lane's use so far. Wrong counts refusals from
// the beginning.
func (d Draw) JudgeReporting() Verdict { return d.judgeReporting(true) }

// judgeReporting is JudgeReporting. Only if compare is true, it checks whether an even pace would
// be good.
func (d Draw) judgeReporting(compare bool) Verdict {
	res := Run(d.Run, d.Seed)
	v := Verdict{Draw: d, Early: res.Early, Wrong: res.All, Used: d.share(res), Known: 1}
	if compare && !v.good() && !d.paceable() {
		v.Known = 0
	}
	return v
}

// share returns the calls served since Run.From, as a share of the possible ones.
func (d Draw) share(res Result) float64 {
	if res.All == mostRefused {
		return 0
	}
	could, _ := d.Run.known(res.door, res.start+int64(d.Run.From), res.start+int64(d.Run.Until))
	if could == 0 {
		return 1
	}
	return float64(res.Served) / float64(could)
}

// good reports whether few were refused, and most of the possible calls were served.
func (v Verdict) good() bool { return v.Wrong <= fewReported && v.Used >= goodShare }

// paceable reports whether a client is good that knows the rate of a bucket and keeps an even pace
// at it or a little below. It is not if calls bunch on the way more than the bucket allows. All
// other vendors are paceable.
func (d Draw) paceable() bool {
	if r := d.Run.Vendor.Rules; len(r) > 1 || r[0].Kind != Bucket {
		return true
	}
	s := d.Run
	for _, f := range [...]float64{1, 0.97, 0.93} {
		s.Knows = &learn.Plan{Rate: f * s.Vendor.Rules[0].PerSecond()}
		res := Run(s, d.Seed)
		if (Verdict{Wrong: res.All, Used: d.share(res)}).good() {
			return true
		}
	}
	return false
}

// A Reported counts verdicts of [Draw.JudgeReporting], in all and by group. The zero
// Reported is empty.
type Reported struct {
	All    ReportedCount
	Groups map[string]ReportedCount
	Bad    []Verdict // more than a few refusals, or less than most of the possible calls
}

// A ReportedCount is how many draws were judged, and how many of them were good.
type ReportedCount struct {
	N     int
	Few   int // with at most two refusals
	Most  int // with at least goodShare used
	Stuck int // with less than stuckShare used
	Early int // departures before a reported time
	Never int // not good, like an evenly paced client that knows the bucket
}

const (
	// goodShare is the least use if every answer reports what is left.
	goodShare = 0.9
	// stuckShare is the least use of any lane.
	stuckShare = 0.6
)

func (c ReportedCount) add(v Verdict) ReportedCount {
	c.N++
	c.Early += v.Early
	if v.Known == 0 {
		c.Never++
	}
	if v.Wrong <= fewReported {
		c.Few++
	}
	if v.Used >= goodShare {
		c.Most++
	}
	if v.Used < stuckShare {
		c.Stuck++
	}
	return c
}

func (c ReportedCount) String() string {
	n := float64(max(1, c.N)) / 100
	return fmt.Sprintf("%5d: %5.1f %% with <= %d 429s, %5.1f %% used >= %.1f, %3d below %.1f, %3d beyond an even pace, %d early",
		c.N, float64(c.Few)/n, fewReported, float64(c.Most)/n, goodShare, c.Stuck, stuckShare, c.Never, c.Early)
}

// Add counts a verdict.
func (t *Reported) Add(v Verdict) {
	if t.Groups == nil {
		t.Groups = map[string]ReportedCount{}
	}
	t.All = t.All.add(v)
	for _, group := range v.Draw.reportedTraits() {
		t.Groups[group] = t.Groups[group].add(v)
	}
	if !v.good() {
		t.Bad = append(t.Bad, v)
	}
}

// worst is how many draws are printed, by use and by refusals.
const worst = 15

// Print writes the worst draws, then the groups.
func (t *Reported) Print(w io.Writer) {
	print := func(title string, compare func(a, b Verdict) int) {
		slices.SortStableFunc(t.Bad, compare)
		fmt.Fprintln(w, title)
		for _, v := range t.Bad[:min(worst, len(t.Bad))] {
			fmt.Fprintf(w, "used %.3f refused %d, known %.0f: %v\n", v.Used, v.Wrong, v.Known, v.Draw)
		}
	}
	print("least used", func(a, b Verdict) int { return cmp.Compare(a.Used, b.Used) })
	print("most refused", func(a, b Verdict) int { return cmp.Compare(b.Wrong, a.Wrong) })
	for _, name := range slices.Sorted(maps.Keys(t.Groups)) {
		fmt.Fprintf(w, "%v: %s\n", t.Groups[name], name)
	}
}

// reportedTraits returns the traits that the draw shares with others.
func (d Draw) reportedTraits() []string {
	s := d.Run
	kind, reset := d.kinds(), [...]string{"whole", "next", "rolling", "absent"}[s.Style.Reset]
	limit := [...]string{"quota", "rate", "absent"}[s.Style.Limit]
	way := "up to an interval"
	switch inFlight := d.Rate * s.trip().Seconds(); {
	case inFlight > 16:
		way = "more than 16 intervals"
	case inFlight > 1:
		way = "1 to 16 intervals"
	}
	burst := ""
	if r := s.Vendor.Rules[0]; len(s.Vendor.Rules) == 1 && r.Kind == Bucket {
		burst = ", burst below 16"
		if r.Burst >= 16 {
			burst = ", burst of 16 or more"
		}
	}
	return []string{
		"kind " + kind + ", reset " + reset,
		"kind " + kind + burst,
		"limit " + limit,
		"round " + [...]string{"exact", "secs", "1 sec", "epoch"}[s.Style.Round],
		"quotas " + [...]string{"", "tightest", "named", "policies"}[s.Style.Quotas],
		"retry " + [...]string{"none", "s", "ms"}[s.Style.Retry],
		"trip " + way,
	}
}
