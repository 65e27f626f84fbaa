package reserve

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/throttle"
)

// An outage is a time in which the store does not answer. Meanwhile a limiter of
// this process enforces the limits: all of them, or a share, as the store's OnLoss
// says.
type outage struct {
	local throttle.Limiter // nil: there was no outage yet. It stays, so that the next outage is no new start.
	spent []int64          // of each limit, through local, which was not reported yet
}

// enforce begins to enforce the limits here, by the policy for a loss.
func (l *Limiter) enforce() {
	now, set, o, limits := l.clock.Now(), &l.Hub.Set, &l.outage, l.limits
	if set.Local() {
		limits = l.divided()
		part := set.Share / float64(l.known.replicas(set))
		for i := range limits {
			if l.limits[i].Per > longPer {
				// It is spent once: what was used here stays used from outage to outage.
				limits[i].Algorithm = throttle.AlgorithmTokenBucket
				limits[i].Burst = max(int(l.known.left(now, i, &l.limitSet)*part), 1)
				reserved := min(int(float64(l.limits[i].Reserved())*part), limits[i].Burst-1)
				limits[i].Reserve = throttle.Part(strconv.Itoa(reserved))
			}
		}
	}
	if o.local != nil {
		_ = o.local.Tune(now, limits...) // they were resolved before
		return
	}
	o.local, _ = throttle.Local{}.Limiter("", limits...) // likewise
	if set.FailOpen {
		o.reconcile(now, throttle.Fact{Until: now}) // the fleet has spent the saved permits
	}
}

// longPer is the longest time of a limit that is spaced evenly in an outage. For a longer one
// each replica has its part of the permits that were left at once: at half of 5000 a day
// for each of 8 replicas a permit would come every four and a half minutes. It has its part of
// what the limit reserves, too.
const longPer = time.Minute

// divided returns the limits of one of the replicas that cannot see each other: a share
// of the rate, evenly spaced, without a burst. A share of 0.5 of 100/s burst 20 leaves each
// of 5 replicas
//
//	100/s / 5 * 0.5 = 10/s burst 1
func (l *Limiter) divided() []throttle.Limit {
	share, replicas := l.Hub.Set.Share, float64(l.known.replicas(&l.Hub.Set))
	out := make([]throttle.Limit, len(l.limits))
	for i, limit := range l.limits {
		limit = limit.Enforced()
		if i == len(l.limits)-1 && l.encoded.Learned { // the store bounds calls by reported quotas
			limit.Per = max(limit.Per, time.Duration(limit.Permits)*l.learning.pace.Even)
		}
		per, permits := float64(limit.Per)*replicas/share, float64(limit.Permits)
		// Fewer permits if the time would be too long for a Duration.
		if scale := per / float64(math.MaxInt64/2); scale > 1 {
			per, permits = per/scale, max(permits/scale, 1)
		}
		out[i] = throttle.LeakyBucket(int(permits), time.Duration(per)).Of(limit.Unit).Named(limit.Name)
	}
	return out
}

// logShare logs the rate of the lane in an outage, if that is a guess: Redis never
// answered for the lane, and Store.Replicas is zero. One line for a store is enough.
// No lock is held.
func (l *Limiter) logShare() {
	l.Mu.Lock()
	set, limits := &l.Hub.Set, l.configured()
	guesses := l.Lost && set.Local() && max(l.known.most, set.Replicas) == 0
	l.Mu.Unlock()
	if !guesses || len(limits) == 0 || l.Link.Guessed.Swap(true) {
		return
	}
	rates := make([]string, len(limits))
	for i, limit := range limits {
		one := throttle.Limit{Permits: 1, Per: limit.Per, Unit: limit.Unit}.String() // "1/m of tokens"
		rates[i] = fmt.Sprintf("%.6g", float64(limit.Enforced().Permits)*set.Share/call.DefaultReplicas) + strings.TrimSuffix(one[1:], " of requests")
	}
	l.log(slog.LevelWarn, fmt.Sprintf("weir: a lane for which Redis never answered goes at %s (Replicas not set: 1 of %d)", strings.Join(rates, " and "), call.DefaultReplicas))
}

// takeLocal is Take in an outage. The local limits are slower than the lane's, so for time in
// line they would date a permit back by more than the lane's tolerance, and the queue could
// not spend it. So the credit is half of that tolerance at most.
func (l *Limiter) takeLocal(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	o := &l.outage
	if l.Hub.Set.FailClosed || o.local == nil {
		return 0, fmt.Errorf("distributed: lane %q: %w: %s", l.Lane, call.ErrUnavailable, l.Cause)
	}
	r.Since = max(r.Since, now.Add(-l.tolerance/2))
	g, err := o.local.Take(now, r)
	if errors.Is(err, throttle.ErrExceedsBurst) { // by what is left here, not by the lane's limits
		_ = o.local.Tune(now, l.divided()...) // they were resolved before
		g, err = o.local.Take(now, r)
	}
	if err != nil || g.At > now {
		return g.At, err
	}
	for i, n := range l.encoded.Permits(l.costs(&r)) {
		o.spent[i] += n
	}
	l.stats.Local++
	return g.At, nil
}

// reconcile passes a fact of the vendor to local, also outside an outage.
func (o *outage) reconcile(now throttle.Instant, f throttle.Fact) {
	if o.local != nil {
		o.local.Reconcile(now, f)
	}
}

// Lose begins an outage, or notes the latest cause of the current one.
func (l *Limiter) Lose(cause string) {
	l.Cause = cause
	if l.Lost {
		return
	}
	l.Lost = true
	if !l.Hub.Set.FailClosed {
		l.enforce()
	}
	if l.paused > 0 {
		l.outage.reconcile(l.clock.Now(), throttle.Fact{Until: l.paused})
	}
}

// Probe calls a store that did not answer.
func (l *Limiter) Probe() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if !l.Closed && l.Lost {
		l.start(nil)
	}
}

// leastDebt is the least time from the report of one restored lane to that of the next.
const leastDebt = 100 * time.Microsecond

// Restore ends the outage after the node has answered another lane. A lane without callers is back
// at once. It reports what was spent meanwhile in its turn, a round trip after the lane before. In
// the others the policy holds until the lane's own call is answered.
func (l *Limiter) Restore(debts int) (owes bool) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Closed || !l.Lost || l.Underway {
		return false
	}
	if l.demand.waiting || l.hurries() || l.reports.urgent() {
		l.start(nil)
		return false
	}
	l.Recover()
	if owes = len(l.reports) > 0 || l.outage.owes(); owes {
		l.linger.Set(time.Duration(debts) * max(l.Trip.Usual(), leastDebt))
	}
	return owes
}

// owes reports whether something was spent that was not reported.
func (o *outage) owes() bool { return !free(o.spent) }
