package sim

import (
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A Scenario is one run: a vendor, the way to it, and the demand.
type Scenario struct {
	Vendor      Vendor
	Style       Style
	Service     time.Duration // mean time to serve a call
	Exponential bool          // service times vary exponentially; else they are constant
	ServiceTo   time.Duration // service times vary evenly from Service to it; zero: they do not
	Way         time.Duration // median time one way; log-normal
	Jitter      float64       // sigma of the logarithm of the way time
	Workers     int           // closed loop: each sends its next call when one is served
	Open        float64       // open loop: calls arriving each second, with no workers
	Later       float64       // open loop: calls arriving each second from LaterAt on; zero: as many
	LaterAt     time.Duration
	Calls       int           // the run ends when so many are served; zero: at Until
	Until       time.Duration // the longest run
	Refusals    int           // the run ends when so many are refused; zero: it does not
	From        time.Duration // what Result.Served, Refused count begins here
	Late        time.Duration // facts reach the learner so much later, as they do if processes share the lane
	Configured  []throttle.Limit
	Changes     []Change
	NoLearner   bool
	Knows       *learn.Plan     // the client learns nothing, keeps to this plan, and obeys reported times
	Without     learn.Mechanism // what is switched off of the learner
	Spread      bool            // spread reported windows
}

// A Change happens to the vendor while the run goes on.
type Change struct {
	At        time.Duration
	Vendor    *Vendor // nil: stays
	Strangers float64 // calls of others each second from then on
	Burst     int     // strangers come so many at once
	Style     *Style  // nil: stays
}

// A Result is what came of a run.
type Result struct {
	Wall     time.Duration // until the last call was served
	Served   int           // since From
	Refused  int           // since From
	All      int           // refused in all
	First    int           // refused before the first call that left after the first refusal had landed
	Accepted int           // accepted before the first refusal landed
	Early    int           // departures before a reported time
	Probes   int           // most calls since From that asked in vain, one after the other
	Worst    int           // most refusals of one call
	P99      time.Duration // in line to served
	Bins     []Bin
	BinLen   time.Duration
	Strange  int // served strangers since From
	State    learn.State

	start int64 // when the run began
	door  *door // as it was at From
}

// A Bin counts what landed in one piece of time.
type Bin struct{ Served, Refused, Strange int }
