package weir

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A LaneState is the state of one lane at one instant.
type LaneState struct {
	Key      string                // "" for the lane that keys beyond MaxLanes share
	Waiting  int                   // requests in line
	Line     []shaping.Standing    // by class and tenant, the most requests first; nil: an empty line
	Requests int                   // requests in the lane: in line, in flight or between attempts
	InFlight int                   // requests in flight, if a bound of InFlight is set; else zero
	Paused   time.Duration         // until the lane's pause ends; zero: it is not paused
	Refused  time.Duration         // since the server last refused; zero: never
	Counts   Counts                // of what happened since the lane was made
	Stale    uint64                // permits that were void because their request woke too late
	Limits   []throttle.LimitState // in the order in which they were configured
	Learned  Learned               // of the server's limit; the zero value if nothing is sure
	Shadow   []ShadowCount         // of Transport.Shadow; nil if there are no shadow limits

	// Store is the state of the lane's Transport.Store: whether it answers, how many processes
	// share the limits, what was lost. It is nil if the lane's limits are enforced in this process
	// alone.
	Store *throttle.StoreState

	// Flights says how many requests may be in flight here, as a part of
	// Transport.InFlight.Shared. It is nil if that is not set.
	Flights *throttle.FlightState
}

// Learned is a lane's learned limit of its server. The zero value means that nothing is certain.
type Learned struct {
	Rate     float64 // calls per second; zero: not known
	InFlight int     // calls in flight at a time, of all processes that share the Store; zero: not known
	Reported bool    // from the server's reported quotas
	Probing  bool    // it refused; one probe at a time is sent
}

// Snapshot returns the state of every lane, in the order of their keys. It is
// safe for concurrent use, and takes each lane's lock for a moment. It is no use of the
// Transport: fields may still change afterwards.
func (t *Transport) Snapshot() []LaneState {
	if t.limits.Load() == nil { // no lock: LimitsFor may call Snapshot, also for Apply
		return nil
	}
	var states []LaneState
	for _, l := range t.lanes.All() {
		states = append(states, stateOf(l))
	}
	slices.SortFunc(states, func(a, b LaneState) int { return strings.Compare(a.Key, b.Key) })
	return states
}

// stateOf returns the state of a lane.
func stateOf(l *lane.Lane) LaneState {
	s := l.Queue.State()
	return LaneState{
		Key:      l.Key,
		Waiting:  s.Waiting,
		Line:     l.Queue.Standings(),
		Requests: l.Requests(),
		InFlight: l.Gate.InFlight(),
		Paused:   s.Paused,
		Refused:  l.SinceRefusal(),
		Counts:   observerOf(l).counts.read(),
		Stale:    s.Stale,
		Learned:  Learned(l.Course.Known()),
		Shadow:   shadowCounts(l),
		Limits:   s.Limits,
		Store:    s.Store,
		Flights:  l.Gate.Flights(),
	}
}

// An Outcome is the decision of limits on a request, in the words of the metrics.
type Outcome uint8

// The outcomes.
const (
	Admitted = Outcome(lane.Admitted) // it departed at once
	Held     = Outcome(lane.Held)     // it had to wait
	Rejected = Outcome(lane.Rejected) // it never departed: the line was full, the wait too long or the cost too great
)

// String returns the outcome's word: "admitted", "held" or "rejected".
func (o Outcome) String() string {
	if words := [...]string{"admitted", "held", "rejected"}; int(o) < len(words) {
		return words[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// A ShadowCount counts the requests on which the enforced limits and the
// shadow limits came to these outcomes. They agree if Live is Candidate. A
// request whose context was over before it came is not counted.
type ShadowCount struct {
	Live, Candidate Outcome
	Requests        uint64
}

// shadowCounts returns what a lane's shadow has counted; nil if there is none.
func shadowCounts(l *lane.Lane) (counts []ShadowCount) {
	if l.Shadow == nil {
		return nil
	}
	for live, candidates := range l.Shadow.Counts() {
		for candidate, n := range candidates {
			if n > 0 {
				counts = append(counts, ShadowCount{Outcome(live), Outcome(candidate), n})
			}
		}
	}
	return counts
}
