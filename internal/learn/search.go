package learn

import "math"

// Search finds the rate that refusals bound. While calls are served, the rate in force rises from below the estimate to
// above it, slowest at first and ever faster, as CUBIC does above its plateau. A refusal ends the search and brings
// a new estimate (measure.go). The zero value knows no rate.
type Search struct {
	R    float64 // permits per second in force
	W    float64 // estimate of the vendor's rate; zero: there is none
	U    float64 // half of the estimate's width, as a share of W
	X    float64 // how far the search is: 0 at W(1-U), 1 at W
	Rise float64 // by how much the last served call raised the logarithm of R

	Marks  [marks]Mark    // a departure for each quarter of the search
	Rates  [marks]float64 // rate in force at each of Marks
	Marked int            // quarters of the search begun

	Measured bool    // W was measured or presumed
	B        float64 // calls served before the first refusal: the burst, and what fell due meanwhile; lowered since
	Burst    float64 // B at first
	Spent    float64 // seconds in which Burst was served, in a fleet; zero: unknown
	Pause    float64 // seconds of the last silence
	G        float64 // seconds that a refusal costs: of the last silence, those that probes did not cover
	P        float64 // seconds of the vendor's period, as far as it was seen; zero: none was
	Block    float64 // seconds for which a refusal blocks the lane; zero: it does not, as far as is known
	Early    float64 // share of refusals that came early in their search, smoothed
	Mute     bool    // the last long episode measured nothing: a window was used up when it had hardly begun
	Whole    float64 // lower bound of the vendor's rate, of which the lane takes a share; zero: it takes all, or looks for the rate
	Missed   int     // refusals below that share since a search last passed forgiven
}

const (
	leastWidth = 0.015 // of the estimate: with less, searches would take minutes; with more, calls are lost. Rows "steady", "200/s doubled"
	mostWidth  = 0.5   // of the estimate: half is all that is known of a rate at first
	narrow     = 0.25  // width of an estimate that was measured once. Rows "10/s + 300/min", "log 600/min"
	mostRise   = 0.22  // of the logarithm of the rate in a round trip: so a fifth of the calls in flight is above a limit that is met. Rows "16 in flight, 10 s block", "flood of 60/s"
	marks      = 8     // departures kept: one for each quarter by which X rose, over its last rise by 2
	quarters   = 4     // marks while X rises by 1
	farthestX  = 40    // 2^40 times the first step: any rate has been reached
	earlyX     = 0.25  // X until which a refusal comes early in its search: the estimate's lower bound was refused
	tooEarly   = 0.7   // of that lower bound: the rate after it. Random vendors whose refusals count
)

// A refusal costs s seconds, in which W·s calls are lost. X rises by 1 in n = W/U·s calls, so a search gains about n·U
// calls, as many as its refusal loses: 1 s at 100/s and a width of 0.1 makes n = 1,000. These bound s:
const (
	costCalls  = 2.35  // intervals of W at least. Rows "steady"
	costLeast  = 0.045 // seconds at least. Row "steady 200/s burst 20"
	costMost   = 20    // seconds, times U: as much of a silence counts at most. The longest of rows "drain Retry-After s" and "200/s halved"
	costPeriod = 3     // periods, times U: the same in windows. Test "ReportedWindowsAreUsed"
	costBlocks = 10    // blocks, times U: the same if refusals block. Row "30 s block on exhaustion"
	costSpent  = 1.5   // most rise of X in the W·P calls of a window. Rows "window 600/min"
	costEarly  = 2     // n is 1 + 2 times as great if all refusals come early, as beside other clients. Row "steady 10/s burst 1"
	risePeriod = 0.4   // least rise of the logarithm of R in a period, once a window with more than W·P calls was served
)

// calls returns n.
func (r *Search) calls() float64 {
	cost := min(r.G*min(1, narrow/r.U), r.U*max(costMost, costPeriod*r.P, costBlocks*r.Block))
	return r.W / r.U * max(costCalls/r.W, costLeast, cost, r.P*r.U/costSpent) * (1 + costEarly*r.Early)
}

// grow raises R for f, which was served while a caller waited: by U, to W, in n calls, by 2U in the next n, and then ever
// faster. It rises by least at least. A window refuses at its end alone, so beside a long one it rises less fast.
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
	if r.X > costSpent && r.P > f.Landed.Sub(f.Departed).Seconds() && asked { // a whole window was served, as X shows: the limit rose
		step = max(step, risePeriod/(r.R*r.P))
	}
	r.Rise = min(max(step, least), mostRise/max(1, float64(f.Flying)))
	r.R = min(r.R*math.Exp(r.Rise), AnyRate)
}

// widen lowers and widens the estimate after a refusal at a rate that measured nothing.
func (r *Search) widen(refused float64) {
	if r.W == 0 {
		r.W = refused
	}
	r.W, r.U = 0.9*r.W, min(max(2*r.U, 0.1), mostWidth)
}

func (r *Search) again() {
	r.R = r.W * (1 - r.U)
	r.X, r.Marked, r.Rise = 0, 0, 0
}

// windows reports whether the vendor counts in windows, as far as is known: its burst is worth half a period or more.
func (r *Search) windows() bool { return r.P > 0 && r.Burst >= r.W*r.P/2 }
