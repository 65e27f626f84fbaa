package learn

import "math"

// Search finds the rate that refusals bound: a rate in force that rises from below the estimate to above it
// while calls are served, slowly in between, as CUBIC leaves its plateau. A refusal ends the search and brings
// a new estimate (measure.go). The zero value knows no rate.
type Search struct {
	R    float64 // permits per second in force
	W    float64 // estimate of the vendor's rate; zero: there is none
	U    float64 // width of the estimate, as a share of it
	X    float64 // how far the search is: 0 at W(1-U), 1 at W
	Rise float64 // by how much the last served call raised the logarithm of R

	Marks  [marks]Mark    // a departure for each quarter of the search
	Rates  [marks]float64 // rate in force at each of Marks
	Marked int            // number of Marks

	Measured bool    // W was measured or presumed
	B        float64 // calls served before the first refusal: the burst, and what fell due meanwhile; lowered since
	Burst    float64 // B at first
	Spent    float64 // seconds in which Burst was served
	Pause    float64 // seconds of the last silence
	G        float64 // seconds of the last silence that probes did not cover
	P        float64 // seconds of the vendor's period, as far as it was seen; zero: none was
	Block    float64 // seconds for which a refusal blocks the lane; zero: it does not, as far as is known
	Early    float64 // share of refusals that came early in their search, smoothed
	Mute     bool    // the last long episode measured nothing: a window was used up when it had hardly begun
	Whole    float64 // the vendor's rate, of which the lane takes a share; zero: it takes all, or looks for it
	Missed   int     // refusals below that share, less long searches without one
}

const (
	leastWidth = 0.015 // of the estimate: with less, searches would take minutes; with more, calls are lost. Rows "steady", "200/s doubled"
	mostWidth  = 0.5   // of the estimate: half is all that is known of a rate at first
	narrow     = 0.25  // width of an estimate that a search has measured once. Rows "10/s + 300/min", "log 600/min"
	mostRise   = 0.22  // of the logarithm of the rate in a round trip: what is in flight when a limit is met is a fifth of it. Rows "16 in flight, 10 s block", "flood of 60/s"
	marks      = 8     // departures of a search that are kept: those of two whole ones
	quarters   = 4     // marks in a search
	farthestX  = 40    // 2^40 times the first step: any rate has been reached
	tooEarly   = 0.7   // of the lower bound, after a refusal early in a search. Random vendors whose refusals count
)

// The length of a search, in seconds times W/U calls. It is what a refusal costs, so that
// the calls lost by one are in proportion to those gained.
const (
	costCalls  = 2.35  // calls, and a search of one gain takes that many: rows "steady"
	costLeast  = 0.045 // seconds. Row "steady 200/s burst 20"
	costMost   = 20    // widths, in seconds, for a silence: the longest of rows "drain Retry-After s" and "200/s halved"
	costPeriod = 3     // widths, in periods, for a silence of windows. Test "ReportedWindowsAreUsed"
	costBlocks = 10    // widths, in blocks, for a block. Row "30 s block on exhaustion"
	costSpent  = 1.5   // of a period, by widths: a search lasts that many periods. Rows "window 600/min"
	costEarly  = 2     // times longer are searches if all refusals come early: strangers. Row "steady 10/s burst 1"
)

func (r *Search) calls() float64 {
	cost := min(r.G*min(1, narrow/r.U), r.U*max(costMost, costPeriod*r.P, costBlocks*r.Block))
	return r.W / r.U * max(costCalls/r.W, costLeast, cost, r.P*r.U/costSpent) * (1 + costEarly*r.Early)
}

// grow raises the rate for f, which was served while a caller waited, by a step at least.
func (r *Search) grow(f *Fact, asked bool, least float64) {
	n := r.calls()
	r.X = min(r.X+1/n, farthestX)
	if k := int(r.X * quarters); k >= r.Marked {
		r.Marks[k%marks], r.Rates[k%marks] = Mark{f.Ordinal, f.Departed}, r.R
		r.Marked = k + 1
	}
	faster := 5.0
	if r.P*r.W > n/5 {
		faster = 1
	}
	step := r.U * math.Ln2 * math.Exp2(r.X+faster*max(0, r.X-2)) / n
	if r.X > 1.5 && r.P > f.Landed.Sub(f.Departed).Seconds() && asked { // for more than a period it served more than it did: the limit rose
		step = max(step, 0.4/(r.R*r.P))
	}
	r.Rise = min(max(step, least), mostRise/max(1, float64(f.Flying)))
	r.R = min(r.R*math.Exp(r.Rise), AnyRate)
}

// doubt lowers and widens the estimate after a refusal at a rate that measured nothing.
func (r *Search) doubt(refused float64) {
	if r.W == 0 {
		r.W = refused
	}
	r.W, r.U = 0.9*r.W, min(max(2*r.U, 0.1), mostWidth)
}

func (r *Search) again() {
	r.R = r.W * (1 - r.U)
	r.X, r.Marked, r.Rise = 0, 0, 0
}

// windows reports whether the vendor counts in windows, as far as is known: what it served at
// once is worth half a period or more.
func (r *Search) windows() bool { return r.P > 0 && r.Burst >= r.W*r.P/2 }
