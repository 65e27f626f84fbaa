package sim

import (
	"fmt"
	"time"

	"github.com/weirgo/weir/throttle"
)

func bucket(n int, per time.Duration, burst int) Rule {
	return Rule{Kind: Bucket, Permits: n, Per: per, Burst: burst}
}

func vendor(rules ...Rule) Vendor { return Vendor{Rules: rules} }

// base is the demand and the connection unless a row differs.
func base(v Vendor, style Style) Scenario {
	return Scenario{
		Vendor: v, Style: style, Service: 5 * time.Millisecond,
		Way: 500 * time.Microsecond, Jitter: 0.5, Workers: 64, Until: 2 * time.Minute,
	}
}

func (s Scenario) over(from, until time.Duration) Scenario {
	s.From, s.Until = from, until
	return s
}

func (s Scenario) serving(d time.Duration) Scenario {
	s.Service = d
	return s
}

func (s Scenario) changing(c ...Change) Scenario {
	s.Changes = c
	return s
}

// drain is 2,000 calls at a hidden 200/s burst 20.
func drain(name string, style Style, gate, stretch Goal) Row {
	s := base(vendor(bucket(200, time.Second, 20)), style)
	s.Calls = 2000
	return Row{Name: name, Run: s, Gate: gate, Stretch: stretch}
}

func (r Row) with(f func(*Row)) Row {
	f(&r)
	return r
}

// Table returns the gates.
func Table() []Row {
	var rows []Row
	rows = append(rows, drains()...)
	rows = append(rows, steadies()...)
	rows = append(rows, windows()...)
	rows = append(rows, flights()...)
	rows = append(rows, changes()...)
	rows = append(rows, strangers()...)
	rows = append(rows, floods()...)
	rows = append(rows, fleets()...)
	rows = append(rows, reportingBuckets()...)
	rows = append(rows, reportingWindows()...)
	rows = append(rows, flawedReporting()...)
	for i := range rows {
		rows[i].Gate.First = true
	}
	return rows
}

func drains() []Row {
	wall := func(w float64, n int) Goal { return Goal{Wall: w, Refused: n} }
	configured := []throttle.Limit{throttle.TokenBucket(250, time.Second, 20)}
	high := func(r *Row) { r.Run.Configured = configured }
	return []Row{
		drain("drain bare", Bare, wall(1.10, 60), wall(1.03, 30)),
		drain("drain bare, 50 ms service", Bare, wall(1.15, 60), wall(1.05, 60)).with(func(r *Row) {
			r.Run.Service = 50 * time.Millisecond
		}),
		drain("drain bare 50/s, 30 ms service", Bare, wall(1.15, 60), wall(1.05, 30)).with(func(r *Row) {
			r.Run.Vendor = vendor(bucket(50, time.Second, 10)) // one call in flight departs at 33/s
			r.Run.Service, r.Run.Workers, r.Run.Calls = 30*time.Millisecond, 32, 400
		}),
		drain("drain Retry-After s", RetrySecs, wall(1.35, 30), wall(1.2, 30)),
		drain("drain Retry-After-Ms", RetryMillis, wall(1.10, 60), wall(1.01, 60)),
		drain("drain X-RateLimit epoch", Epoch, wall(1.15, 12), wall(1.01, 1)),
		drain("drain X-RateLimit delta", Delta, wall(1.15, 12), wall(1.01, 1)),
		drain("drain IETF", IETF, wall(1.15, 12), wall(1.01, 1)),
		drain("drain IETF, a bucket reported as its rate", Policy, wall(1.15, 12), wall(1.01, 1)),
		drain("drain X-RateLimit, 50 ms", Epoch, wall(1.15, 12), wall(1.01, 1)).with(func(r *Row) {
			r.Run.Service = 50 * time.Millisecond
		}),
		drain("drain to-full", ToFull, wall(1.15, 12), wall(1.01, 1)),
		drain("drain coarse 0 left 1 s", Coarse, wall(1.35, 30), wall(1.1, 30)),
		drain("drain gateway", Gateway, wall(1.35, 30), wall(1.1, 30)),
		drain("drain configured 250 bare", Bare, wall(1.10, 60), Goal{}).with(high),
		drain("drain configured 250 Retry-After s", RetrySecs, wall(1.35, 30), Goal{}).with(high),
		drain("drain configured 250 X-RateLimit", Epoch, wall(1.15, 12), Goal{}).with(high),
		drain("drain configured 250 IETF", IETF, wall(1.15, 12), Goal{}).with(high),
		drain("drain configured 250 coarse", Coarse, wall(1.35, 30), Goal{}).with(high),
		drain("drain configured 250 gateway", Gateway, wall(1.35, 30), Goal{}).with(high),
		drain("drain configured 250, rate reported", Policy, wall(1.15, 12), Goal{}).with(high),
	}
}

func steadies() []Row {
	low := Goal{Used: 0.95, RefusedShare: 0.007}
	high := Goal{Used: 0.98, RefusedShare: 0.007}
	one := func(name string, n int, per time.Duration, from, until time.Duration) Row {
		return Row{
			Name: name, Run: base(vendor(bucket(n, per, 1)), Bare).over(from, until),
			Rate: float64(n) / per.Seconds(), Gate: low, Stretch: high,
		}
	}
	free := func(name string, workers int) Row {
		s := base(Vendor{}, Bare).over(100*time.Millisecond, time.Second)
		s.Workers = workers
		return Row{Name: name, Run: s, Bare: true, Gate: Goal{Used: 0.99}, Stretch: Goal{Used: 0.99}}
	}
	return []Row{
		{
			Name: "steady 200/s burst 20", Run: base(vendor(bucket(200, time.Second, 20)), Bare).over(20*time.Second, 140*time.Second),
			Rate: 200, Gate: Goal{Used: 0.98, RefusedShare: 0.002}, Stretch: Goal{Used: 0.99, RefusedShare: 0.0006},
		},
		one("steady 10/s burst 1", 10, time.Second, 10*time.Second, 130*time.Second),
		one("steady 1/s burst 1", 1, time.Second, 100*time.Second, 1300*time.Second),
		one("steady 10/min burst 1", 10, time.Minute, 600*time.Second, 7800*time.Second),
		one("steady 3/min burst 1", 3, time.Minute, 2000*time.Second, 26000*time.Second),
		free("no limit, 64 workers", 64),
		free("no limit, 1,000 workers", 1000),
	}
}

func windows() []Row {
	fixed := func(k Kind, n int, per time.Duration) Rule { return Rule{Kind: k, Permits: n, Per: per} }
	row := func(name string, v Vendor, style Style, from, until time.Duration, rate float64, gate, stretch Goal) Row {
		return Row{Name: name, Run: base(v, style).over(from, until), Rate: rate, Gate: gate, Stretch: stretch}
	}
	m := time.Minute
	day := 24 * time.Hour
	counting := vendor(fixed(Log, 600, m))
	counting.RefusalsCount = true
	block := vendor(bucket(10, time.Second, 10))
	block.Block = 30 * time.Second
	blockingWindow := vendor(fixed(Fixed, 50, 5*time.Second))
	blockingWindow.Block = 30 * time.Second
	return []Row{
		row("window 600/min aligned, bare", vendor(fixed(Fixed, 600, m)), Bare, 4*m, 14*m, 10, Goal{Used: 0.97, RefusedShare: 0.01}, Goal{Used: 0.99, RefusedShare: 0.0034}),
		row("window 600/min first use, bare", vendor(fixed(FirstUse, 600, m)), Bare, 4*m, 14*m, 10, Goal{Used: 0.97, RefusedShare: 0.01}, Goal{Used: 0.99, RefusedShare: 0.0034}),
		row("window 600/min, X-RateLimit", vendor(fixed(Fixed, 600, m)), Epoch, 2*m, 10*m, 10, Goal{Used: 0.98, Refused: 12}, Goal{}),
		row("window 300/5s, X-RateLimit", vendor(fixed(Fixed, 300, 5*time.Second)), Epoch, 20*time.Second, 2*m, 60, Goal{Used: 0.98, Refused: 12}, Goal{}),
		row("window 300/5s, IETF", vendor(fixed(Fixed, 300, 5*time.Second)), IETF, 20*time.Second, 2*m, 60, Goal{Used: 0.98, Refused: 12}, Goal{}),
		row("log 600/min, bare", vendor(fixed(Log, 600, m)), Bare, 4*m, 14*m, 10, Goal{Used: 0.93, RefusedShare: 0.03}, Goal{Used: 0.98, RefusedShare: 0.01}),
		row("10/s + 300/min, bare", vendor(bucket(10, time.Second, 10), fixed(Fixed, 300, m)), Bare, 4*m, 14*m, 5, Goal{Used: 0.95, RefusedShare: 0.03}, Goal{Used: 0.95, RefusedShare: 0.01}),
		row("10/s + 300/min, tightest reported", vendor(bucket(10, time.Second, 10), fixed(Fixed, 300, m)), Epoch, 4*m, 14*m, 5, Goal{Used: 0.95, RefusedShare: 0.03}, Goal{Used: 0.95, RefusedShare: 0.01}),
		row("10/s + 300/min + 5,000/d, tightest", vendor(bucket(10, time.Second, 10), fixed(Fixed, 300, m), fixed(Fixed, 5000, day)), Epoch, 4*m, 14*m, 5, Goal{Used: 0.95, RefusedShare: 0.03}, Goal{Used: 0.95, RefusedShare: 0.01}),
		row("refusals count, log 600/min, bare", counting, Bare, 4*m, 14*m, 10, Goal{Used: 0.5}, Goal{Used: 0.9}),
		row("30 s block on exhaustion, bare", block, Bare, 4*m, 24*m, 10, Goal{Used: 0.8, Probes: 10}, Goal{Used: 0.9, Probes: 4}),
		row("window 50/5s, 30 s block, bare", blockingWindow, Bare, 10*m, 40*m, 10, Goal{Used: 0.5, Probes: 10}, Goal{Used: 0.9, Probes: 4}),
	}
}

func flights() []Row {
	row := func(name string, exp bool) Row {
		s := base(vendor(Rule{Kind: Flight, Permits: 16}), Bare).over(10*time.Second, 70*time.Second).serving(50 * time.Millisecond)
		s.Exponential = exp
		return Row{Name: name, Run: s, Rate: 16 / 0.0511, Gate: Goal{Used: 0.95, RefusedShare: 0.01}, Stretch: Goal{Used: 0.98, RefusedShare: 0.006}}
	}
	drain := func(n int, service time.Duration, exp bool) Row {
		s := base(vendor(Rule{Kind: Flight, Permits: n}), Bare).serving(service)
		s.Calls, s.Exponential = 2000, exp
		ideal := time.Duration(2000 / float64(n) * float64(service+1100*time.Microsecond))
		name := fmt.Sprintf("drain %d in flight, %v, constant", n, service)
		if exp {
			name = fmt.Sprintf("drain %d in flight, %v, exp.", n, service)
		}
		return Row{Name: name, Run: s, Ideal: ideal, Gate: Goal{Wall: 1.15}}
	}
	unit, plain := row("16 in flight, IETF", false), row("16 in flight, X-RateLimit", false)
	unit.Run.Style, plain.Run.Style = IETF, Resetless
	block := row("16 in flight, 10 s block, bare", false)
	block.Run.Vendor.Block = 10 * time.Second
	block.Run = block.Run.over(2*time.Minute, 12*time.Minute)
	block.Gate, block.Stretch = Goal{Used: 0.5, Probes: 10}, Goal{Used: 0.9, Probes: 4}
	rows := []Row{row("16 in flight, constant", false), row("16 in flight, exponential", true), unit, plain, block}
	for _, n := range []int{8, 16} {
		for _, d := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond} {
			rows = append(rows, drain(n, d, false), drain(n, d, true))
		}
	}
	return rows
}

func changes() []Row {
	var rows []Row
	one := func(name string, style Style, rate, to int, within float64) {
		before, after := max(1, rate/10), max(1, to/10)
		if style == Epoch {
			after = before
		}
		v := vendor(bucket(to, time.Second, after))
		s := base(vendor(bucket(rate, time.Second, before)), style).changing(Change{At: 30 * time.Second, Vendor: &v})
		s.Until = 200 * time.Second
		rows = append(rows, Row{Name: name, Run: s, Rate: float64(to), Gate: Goal{Back: within}})
	}
	one("200/s halved, bare", Bare, 200, 100, 3)
	one("200/s doubled, bare", Bare, 200, 400, 20)
	one("200/s x 10, bare", Bare, 200, 2000, 30)
	one("200/s to a tenth, bare", Bare, 200, 20, 10)
	one("10/s doubled, bare", Bare, 10, 20, 40)
	one("200/s halved, Retry-After s", RetrySecs, 200, 100, 10)
	one("200/s doubled, Retry-After s", RetrySecs, 200, 400, 150)
	one("200/s halved, X-RateLimit", Epoch, 200, 100, 3)
	one("200/s doubled, X-RateLimit", Epoch, 200, 400, 3)
	one("200/s x 10, X-RateLimit", Epoch, 200, 2000, 5)
	one("200/s to a tenth, X-RateLimit", Epoch, 200, 20, 3)
	for _, n := range []int{8, 32} {
		v := vendor(Rule{Kind: Flight, Permits: n})
		s := base(vendor(Rule{Kind: Flight, Permits: 16}), Bare).serving(50 * time.Millisecond).changing(Change{At: 30 * time.Second, Vendor: &v})
		s.Until = time.Minute
		within := 3.0
		name := "16 in flight to 8"
		if n > 16 {
			within, name = 20, "16 in flight to 32"
		}
		rows = append(rows, Row{Name: name, Run: s, Rate: float64(n) / 0.0511, Gate: Goal{Back: within}})
	}
	for _, n := range []int{300, 1200} {
		v := vendor(Rule{Kind: Fixed, Permits: n, Per: time.Minute})
		s := base(vendor(Rule{Kind: Fixed, Permits: 600, Per: time.Minute}), Bare).changing(Change{At: 6 * time.Minute, Vendor: &v})
		s.Until = 14 * time.Minute
		name, within := "window 600 to 300", 64.0
		if n > 600 {
			name, within = "window 600 to 1,200", 121
		}
		rows = append(rows, Row{Name: name, Run: s, Rate: float64(n) / 60, Gate: Goal{Back: within}})
	}
	return rows
}

func strangers() []Row {
	row := func(name string, style Style, burst int, gate, stretch Goal) []Row {
		s := base(vendor(bucket(200, time.Second, 20)), style).over(25*time.Second, 80*time.Second)
		s.Changes = []Change{{At: 20 * time.Second, Strangers: 100, Burst: burst}}
		back := s.changing(s.Changes[0], Change{At: 80 * time.Second})
		back.Until = 2 * time.Minute
		s.Changes = s.Changes[:1]
		return []Row{
			{Name: name, Run: s, Rate: 200, Gate: gate, Stretch: stretch},
			{Name: name + ", leave", Run: back, Rate: 200, Gate: Goal{Back: 15}},
		}
	}
	rows := row("strangers half, bare", Bare, 0, Goal{Used: 0.65, RefusedShare: 0.03}, Goal{Used: 0.65, RefusedShare: 0.005})
	return append(rows, row("strangers half, X-RateLimit", Epoch, 0, Goal{Used: 0.9, RefusedShare: 0.01}, Goal{Used: 0.9, RefusedShare: 0.005})...)
}

// floods are strangers that take everything for a second, and stop.
func floods() []Row {
	row := func(name string, rule Rule, style Style, workers int, within float64) Row {
		s := base(vendor(rule), style).serving(100 * time.Millisecond)
		s.Workers, s.Until = workers, 2*time.Minute
		at := time.Minute
		if workers <= 12 { // served without a refusal, so nothing is learned before
			at = 2 * time.Second
		}
		s.Changes = []Change{{At: at, Strangers: 2000}, {At: at + time.Second}}
		return Row{Name: name, Run: s, Rate: min(float64(workers), 12) / 0.1011, Gate: Goal{Back: within}}
	}
	places := Rule{Kind: Flight, Permits: 12}
	rate := func(name string, style Style, workers int, within float64) Row {
		r := row(name, bucket(60, time.Second, 12), style, workers, within)
		r.Rate = min(r.Rate, 60)
		return r
	}
	return []Row{
		row("flood of 12 in flight, IETF", places, IETF, 6, 5),
		row("flood of 12 in flight, bare", places, Bare, 6, 5),
		row("flood of 12 in flight, 64 workers, IETF", places, IETF, 64, 5),
		row("flood of 12 in flight, 64 workers, bare", places, Bare, 64, 5),
		rate("flood of 60/s, bare", Bare, 6, 5),
		rate("flood of 60/s, Retry-After s", RetrySecs, 6, 6),
		rate("flood of 60/s, Retry-After-Ms", RetryMillis, 6, 5),
		rate("flood of 60/s, 64 workers, bare", Bare, 64, 5),
		rate("flood of 60/s, 64 workers, Retry-After s", RetrySecs, 64, 6).with(func(r *Row) {
			r.Rate = 54 // a refusal costs a second, so a tenth is left unused
		}),
		rate("flood of 60/s, 64 workers, IETF", IETF, 64, 5),
	}
}

func fleets() []Row {
	late := func(name string, style Style, d time.Duration, gate Goal) Row {
		r := drain(name, style, gate, Goal{})
		r.Run.Late = d
		return r
	}
	steady := func(name string, d time.Duration) Row {
		s := base(vendor(bucket(200, time.Second, 20)), Bare).over(20*time.Second, 140*time.Second)
		s.Late = d
		return Row{Name: name, Run: s, Rate: 200, Gate: Goal{Used: 0.95, RefusedShare: 0.004}}
	}
	return []Row{
		late("fleet drain, facts 2 ms late", Bare, 2*time.Millisecond, Goal{Wall: 1.05, Refused: 36}),
		late("fleet drain, facts 20 ms late", Bare, 20*time.Millisecond, Goal{Wall: 1.05, Refused: 36}),
		steady("fleet steady, facts 2 ms late", 2*time.Millisecond),
		steady("fleet steady, facts 100 ms late", 100*time.Millisecond),
		late("fleet drain, X-RateLimit, 2 ms", Epoch, 2*time.Millisecond, Goal{Wall: 1.05, Refused: 24}),
		late("fleet drain, X-RateLimit, 20 ms", Epoch, 20*time.Millisecond, Goal{Wall: 1.05, Refused: 24}),
		late("fleet drain, Retry-After s, 2 ms", RetrySecs, 2*time.Millisecond, Goal{Wall: 1.35, Refused: 30}),
		late("fleet drain, Retry-After s, 20 ms", RetrySecs, 20*time.Millisecond, Goal{Wall: 1.35, Refused: 30}),
		late("fleet drain, rate reported, 2 ms", Policy, 2*time.Millisecond, Goal{Wall: 1.05, Refused: 24}),
		late("fleet drain, rate reported, 20 ms", Policy, 20*time.Millisecond, Goal{Wall: 1.05, Refused: 24}),
	}
}
