package sim

import "time"

// A dialect is a way to report what is left.
type dialect struct {
	name  string
	style Style
}

// The dialects of the rows. Their refusals have no Retry-After, so that what is
// measured is what is learned from the quotas.
var (
	xEpoch    = dialect{"X-RateLimit epoch", Style{Quotas: Tightest, Round: InEpoch}}
	xDelta    = dialect{"X-RateLimit delta", Style{Quotas: Tightest, Round: Secs}}
	ietf      = dialect{"IETF", Style{Quotas: Policies, Round: Secs}}
	limitRate = dialect{"limit is the rate", Style{Quotas: Tightest, Limit: PerSec, Round: InEpoch}}
	leftAlone = dialect{"no limit", Style{Quotas: Tightest, Limit: NoLimit, Round: Secs}}
)

// resetting returns the dialect with another meaning of the reset.
func (d dialect) resetting(r Reset) dialect {
	d.style.Reset = r
	d.name += ", " + [...]string{"reset full", "reset next", "rolling", "no reset"}[r]
	return d
}

// ending names the reset of a window.
func (d dialect) ending() dialect {
	d.name += ", reset end"
	return d
}

// A served is a time that answers take.
type served struct {
	name     string
	from, to time.Duration
	way      time.Duration // one way
}

var (
	atOnce  = served{"at once", 0, 0, 75 * time.Microsecond}
	soon    = served{"5 ms", 5 * time.Millisecond, 0, 500 * time.Microsecond}
	slowish = served{"40-80 ms", 40 * time.Millisecond, 80 * time.Millisecond, 500 * time.Microsecond}
)

func (t served) run(v Vendor, style Style) Scenario {
	s := base(v, style)
	s.Service, s.ServiceTo, s.Way = t.from, t.to, t.way
	return s
}

// fewReported is how many calls may be refused in a drain if the vendor reports what is left.
const fewReported = 2

// reportedGoal is the goal of a drain. If more calls are on the way than half of the burst, what
// is left is known too late to keep it in use.
func reportedGoal(rate float64, burst int, trip time.Duration) Goal {
	g := Goal{Wall: 1.05, Refused: fewReported}
	if rate*trip.Seconds() > float64(burst)/2 {
		g.Wall = 1.10
	}
	return g
}

// reportingBuckets are buckets that report on every answer what is left.
func reportingBuckets() []Row {
	var rows []Row
	drain := func(rate, burst, workers, calls int, t served, d dialect) {
		s := t.run(vendor(bucket(rate, time.Second, burst)), d.style)
		s.Workers, s.Calls = workers, calls
		rows = append(rows, Row{
			Name: s.Vendor.Rules[0].String() + ", " + d.name + ", " + t.name, Run: s,
			Gate: reportedGoal(float64(rate), burst, s.trip()),
		})
	}
	fast := func(burst int, t served, d dialect) { drain(200, burst, 64, 2000, t, d) }
	for _, d := range []dialect{xEpoch, xDelta, ietf, limitRate, leftAlone} {
		fast(20, soon, d.resetting(Next))
		fast(20, soon, d.resetting(Whole))
	}
	for _, d := range []dialect{xEpoch, limitRate, leftAlone} {
		fast(20, soon, d.resetting(NoReset))
	}
	for _, t := range []served{atOnce, slowish} {
		fast(20, t, xEpoch.resetting(Next))
		fast(20, t, ietf.resetting(Whole))
		fast(20, t, xDelta.resetting(NoReset))
		fast(20, t, leftAlone.resetting(NoReset))
	}
	for _, burst := range []int{10, 50, 100} {
		fast(burst, soon, xEpoch.resetting(Next))
		fast(burst, soon, xDelta.resetting(NoReset))
	}
	drain(20, 10, 16, 400, soon, xEpoch.resetting(Next))
	drain(20, 10, 16, 400, soon, ietf.resetting(Next))
	drain(20, 10, 16, 400, atOnce, ietf.resetting(Whole))
	drain(20, 10, 16, 400, slowish, leftAlone.resetting(NoReset))
	return rows
}

// reportingWindows are windows and logs that report on every answer what is left.
func reportingWindows() []Row {
	var rows []Row
	window := func(k Kind, n int, per time.Duration, d dialect) {
		s := soon.run(vendor(Rule{Kind: k, Permits: n, Per: per}), d.style)
		windows := max(3, int(time.Minute/per)) // after the first
		s.Calls = n*windows + n/2
		s.Until = time.Duration(2*windows+4) * per
		rows = append(rows, Row{
			Name: s.Vendor.Rules[0].String() + ", " + d.name, Run: s,
			Gate: Goal{Wall: 1.05, Refused: fewReported},
		})
	}
	const s10 = 10 * time.Second
	window(Fixed, 100, s10, xEpoch.ending())
	window(Fixed, 100, s10, xDelta.resetting(NoReset))
	window(FirstUse, 100, s10, ietf.ending())
	window(FirstUse, 100, s10, xDelta.resetting(Rolling))
	window(Log, 100, s10, xDelta.ending())
	window(Log, 100, s10, leftAlone.resetting(NoReset))
	window(Fixed, 600, time.Minute, ietf.ending())
	window(FirstUse, 600, time.Minute, xEpoch.resetting(Rolling))
	window(Log, 600, time.Minute, xDelta.resetting(NoReset))
	window(Fixed, 5000, time.Hour, xEpoch.ending())
	window(FirstUse, 5000, time.Hour, xEpoch.resetting(Rolling))
	window(Log, 50, 10*time.Minute, leftAlone.resetting(NoReset))
	window(Log, 5000, time.Hour, leftAlone.resetting(NoReset))
	// Three windows but for a twentieth: nothing is known of their ends yet.
	begin := func(k Kind, d dialect) {
		const n, per = 300, 5 * time.Second
		s := soon.run(vendor(Rule{Kind: k, Permits: n, Per: per}), d.style)
		s.Calls = 3 * n * 19 / 20
		s.Until = 20 * per
		rows = append(rows, Row{
			Name: "begin, " + s.Vendor.Rules[0].String() + ", " + d.name, Run: s,
			Gate: Goal{Wall: 1.05, Refused: fewReported},
		})
	}
	begin(FirstUse, xEpoch.ending())
	begin(FirstUse, xDelta.resetting(NoReset))
	begin(Log, ietf.ending())
	begin(Log, leftAlone.resetting(NoReset))
	begin(Fixed, leftAlone.resetting(NoReset))
	return rows
}

// flawedReporting are vendors whose reports others spend from, or are flawed.
func flawedReporting() []Row {
	var rows []Row
	fast := vendor(bucket(200, time.Second, 20))
	tens := vendor(Rule{Kind: Fixed, Permits: 100, Per: 10 * time.Second})
	minute := vendor(Rule{Kind: Fixed, Permits: 600, Per: time.Minute})
	half := func(v Vendor, d dialect) {
		rate := v.Rules[0].PerSecond()
		s := soon.run(v, d.style).over(20*time.Second, 80*time.Second).changing(
			Change{At: 20 * time.Second, Strangers: rate / 2}, Change{At: 50 * time.Second})
		rows = append(rows, Row{
			Name: "strangers half for 30 s, " + v.Rules[0].String() + ", " + d.name, Run: s, Rate: rate,
			Gate: Goal{Used: 0.9, RefusedShare: 0.005, Back: 5},
		})
	}
	half(fast, xEpoch.resetting(Next))
	half(fast, ietf.resetting(Whole))
	half(fast, xDelta.resetting(NoReset))
	half(tens, xEpoch.ending())
	flawed := func(name string, flaw Flaw, v Vendor, d dialect) {
		d.style.Flaw = flaw
		s := soon.run(v, d.style)
		per := v.Rules[0].Per
		from := max(10*time.Second, per)
		s = s.over(from, from+max(50*time.Second, 5*per))
		rows = append(rows, Row{
			Name: name + ", " + v.Rules[0].String() + ", " + d.name, Run: s,
			Gate: Goal{Used: 0.85, RefusedShare: 0.01},
		})
	}
	for _, f := range []struct {
		name string
		flaw Flaw
	}{
		{"two nodes", TwoNodes},
		{"one in ten stale", Stale},
		{"one in ten missing", Missing},
		{"missing on the 429", NotOnRefusal},
	} {
		flawed(f.name, f.flaw, fast, xEpoch.resetting(Next))
		flawed(f.name, f.flaw, fast, xDelta.resetting(NoReset))
		flawed(f.name, f.flaw, minute, xDelta.ending())
	}
	old := xEpoch.resetting(Next)
	old.style.Flaw = Stale
	begin := soon.run(fast, old.style)
	begin.Workers, begin.Calls = 64, 2000
	rows = append(rows, Row{
		Name: "begin, one in ten stale, " + fast.Rules[0].String() + ", " + old.name, Run: begin,
		Gate: Goal{Wall: 1 / 0.85, Refused: begin.Calls / 100},
	})
	short := vendor(Rule{Kind: FirstUse, Permits: 300, Per: 5 * time.Second})
	half(short, xEpoch.ending())
	flawed("two nodes", TwoNodes, short, xEpoch.ending())
	flawed("two nodes", TwoNodes, short, xDelta.ending())
	flawed("two nodes", TwoNodes, short, xDelta.resetting(NoReset))
	flawed("one in ten stale", Stale, short, xEpoch.ending())
	flawed("one in ten stale", Stale, short, xDelta.ending())
	flawed("one in ten stale", Stale, short, xDelta.resetting(NoReset))
	return rows
}
