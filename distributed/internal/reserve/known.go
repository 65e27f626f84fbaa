package reserve

import (
	"cmp"
	"time"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// stateEvery is how often a call asks for the state of the limits too.
const stateEvery = time.Second

// A known is the state of the lane in the last replies. Its instants are by the queue's clock.
type known struct {
	seen     script.Echo      // how far it has seen the lane's state
	begun    throttle.Instant // when that generation was seen first
	ended    int64            // epoch of a message, received during the call in progress, that a pause was ended by hand; zero: none was
	alive    int              // replicas that Redis returned last; zero: it has not answered
	most     int              // the largest count of replicas since mostAt, which holds for sinkAfter
	mostAt   time.Time
	period   int64               // in which this replica was counted last
	field    script.LaneField    // that the script need not read again
	differs  bool                // other replicas claim stricter limits
	next     []throttle.Instant  // of each limit: no permit before it but those in hand
	at       throttle.Instant    // when that was
	kept     throttle.Instant    // no permit before it, but those in hand, for requests that leave a reserve and were refused by the last reply; zero: none were
	keptFor  []int64             // costs of each of those
	asked    throttle.Instant    // when the states were last asked for
	states   []script.LimitReply // of each limit; nil: no reply had them
	statesAt throttle.Instant
}

// counted applies the head of a reply, and reports whether it is the first with which others
// claim stricter limits, or the first with which they no longer do.
func (k *known) counted(got *script.Reply) (changed bool) {
	changed = got.Differs != k.differs
	k.alive, k.period, k.differs = got.Alive, got.Period, got.Differs
	if now := time.Now(); got.Alive >= k.most || now.Sub(k.mostAt) > sinkAfter {
		k.most, k.mostAt = got.Alive, now
	}
	if got.Field.Text != "" {
		k.field = got.Field
	}
	return changed
}

// limits applies the state of each limit in a reply that was read at an instant.
func (k *known) limits(got *script.Reply, asked bool, c *call.Clock, read throttle.Instant) {
	k.at = read
	for i, next := range got.Next {
		k.next[i] = 0
		if next > got.Now {
			k.next[i] = c.Here(next)
		}
	}
	if asked {
		k.states, k.statesAt = got.Limits, c.Here(got.Now)
	}
}

// replicas returns the number by which an outage divides: the larger of the count that Redis
// returned lately and the configured one, because quiet replicas are not counted.
func (k *known) replicas(set *call.Settings) int {
	return cmp.Or(max(k.most, set.Replicas), call.DefaultReplicas)
}

// sinkAfter is how long the largest count of replicas holds once fewer are counted, because
// some may be quiet for a moment. Redis itself forgets a quiet replica within ten seconds. If
// it were longer, a fleet that shrank would be far below its share in an outage.
const sinkAfter = time.Minute

// leftFor is how long the permits left at a reply are trusted: other replicas spend them, too.
const leftFor = 10 * time.Second

// left returns how many permits of a limit the store had left at the last reply with states;
// zero: there was no such reply, or it is too old.
func (k *known) left(now throttle.Instant, i int, s *limitSet) float64 {
	if k.states == nil || now.Sub(k.statesAt) > leftFor {
		return 0
	}
	return max(k.state(now, i, s).Headroom, 0)
}

// state returns the state of a limit. A reply has all of it once a second. Each reply has the
// next permit, which is newer for a saturated bucket.
func (k *known) state(now throttle.Instant, i int, s *limitSet) throttle.LimitState {
	limit := s.limits[i]
	out := throttle.LimitState{Limit: limit, Next: max(k.next[i].Sub(now), 0), Headroom: float64(limit.Capacity())}
	if k.states == nil {
		return out
	}
	got := k.states[i]
	if s.encoded.Limits[i].Windows() {
		out.Headroom, out.Utilization = float64(got.Hand), float64(got.Used)/float64(max(got.Permits, 1))
		return out
	}
	owed := max(got.Owed(max(now.Sub(k.statesAt), 0)), 0)
	if k.next[i] > k.statesAt { // one permit is there then
		owed = max(owed, float64(got.Burst)-1+got.Intervals(k.next[i].Sub(now)))
	}
	out.Headroom, out.Utilization = float64(got.Burst)-owed, owed/float64(max(got.Burst, 1))
	return out
}
