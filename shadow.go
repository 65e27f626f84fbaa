package weir

import (
	"fmt"

	"github.com/weirgo/weir/internal/lane"
)

// An Outcome is what limits do with a request, in the words of the metrics.
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
	seen := l.ShadowCounts()
	if seen == nil {
		return nil
	}
	for live := range seen {
		for candidate, n := range seen[live] {
			if n > 0 {
				counts = append(counts, ShadowCount{Outcome(live), Outcome(candidate), n})
			}
		}
	}
	return counts
}
