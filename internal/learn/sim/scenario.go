package sim

import (
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A Scenario is one run: a vendor, the connection to it, and the demand.
type Scenario struct {
	Vendor      Vendor
	Style       Style
	Service     time.Duration // mean time to serve a call
	Exponential bool          // service times vary exponentially; else they are constant
	ServiceTo   time.Duration // service times vary evenly from Service to this; zero: constant
	Way         time.Duration // median one-way time; log-normal
	Jitter      float64       // sigma of the logarithm of the one-way time
	Workers     int           // closed loop: each sends its next call when one is served
	Open        float64       // open loop: calls arriving each second, with no workers
	Later       float64       // open loop: calls arriving each second from LaterAt on; zero: unchanged
	LaterAt     time.Duration
	Calls       int           // the run ends after this many served; zero: at Until
	Until       time.Duration // the longest run
	Refusals    int           // the run ends after this many refused; zero: no end
	From        time.Duration // start of the counts Result.Served and Refused
	Late        time.Duration // delay of facts to the learner, as if processes share the lane
	Configured  []throttle.Limit
	Changes     []Change
	NoLearner   bool
	Knows       *learn.Plan     // the client does not learn, keeps this plan, and obeys reported times
	Without     learn.Mechanism // mechanisms that are switched off
	Spread      bool            // spread reported windows
}

// A Change changes the vendor during the run.
type Change struct {
	At        time.Duration
	Vendor    *Vendor // nil: unchanged
	Strangers float64 // calls of others each second from then on
	Burst     int     // strangers arrive this many at once
	Style     *Style  // nil: unchanged
}

// A Result is the outcome of a run.
type Result struct {
	Wall     time.Duration // until the last call was served
	Served   int           // since From
	Refused  int           // since From
	All      int           // refused in all
	First    int           // refused before the first call that departed after the first refusal had landed
	Accepted int           // accepted before the first refusal landed
	Early    int           // departures before a reported time
	Probes   int           // most refused probes in a row since From
	Worst    int           // most refusals of one call
	P99      time.Duration // in line to served
	Bins     []Bin
	BinLen   time.Duration
	Strange  int // served strangers since From
	State    learn.State

	start int64 // when the run began
	door  *door // its state at From
}

// A Bin counts what landed in one piece of time.
type Bin struct{ Served, Refused, Strange int }
