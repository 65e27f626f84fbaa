package weir

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/internal/telemetry"
	"github.com/weirgo/weir/throttle"
)

const (
	// lookEvery is how often a lane with calls is checked. A lane's state costs a lock, which is
	// cheap once a second.
	lookEvery = time.Second
	// reportEvery is the shortest time between two lines of log for one matter of a lane.
	reportEvery = time.Minute

	// nearShare of a limit leaves a fifth of it for the reader of the line.
	nearShare = 0.8
	// nearLeast is how long a limit takes to be whole again if it is worth a line. A shorter
	// one is used up and whole again between two lines.
	nearLeast = time.Minute

	// spikeTimes as many arrivals as usual are a spike if spikeLeast came since the last
	// look. If calls come at random, 5 a second, 20 in a second come less than once in
	// ten million seconds (Poisson).
	spikeTimes = 4
	spikeLeast = 20
	// spikeMemory is the time over which the usual rate is averaged, and for which looks
	// must have averaged it before a spike is one.
	spikeMemory = time.Minute

	// differShare is the share of requests on which shadow limits may decide otherwise. Of
	// differLeast requests that is 20: limits that differ on one in a hundred come to that
	// once in 300 times (binomial).
	differShare = 0.02
	differLeast = 1000
)

// A watch checks a lane with calls, and reports what an operator should know: in a line of log, and
// in an event of the current call's span. It reports the beginning of each matter, at most once a
// minute.
type watch struct {
	next atomic.Int64 // Instant of the next look

	mu                 sync.Mutex
	since, at          throttle.Instant // of the first look and the last; zero: none
	seen               uint64           // calls at the last look
	usual              float64          // calls per second
	near, spike, shade matter
}

// A matter is one thing that a watch reports.
type matter struct {
	lasts bool             // it was so at the last look
	at    throttle.Instant // of the last report; zero: none
}

// begins records whether the matter is so now, and reports whether it must be reported.
func (m *matter) begins(is bool, now throttle.Instant) bool {
	begins := is && !m.lasts && (m.at == 0 || now.Sub(m.at) >= reportEvery)
	if m.lasts = is && (m.lasts || begins); begins {
		m.at = now
	}
	return begins
}

// look looks at a lane of a call whose turn has ended with err, if it is time.
func (w *watch) look(c *call, l *lane.Lane, err error) {
	now := c.turn.Departed()
	if err != nil {
		now = l.Now()
	}
	if next := w.next.Load(); int64(now) >= next && w.next.CompareAndSwap(next, int64(now.Add(lookEvery))) {
		w.report(c, l, now)
	}
}

// report reports the matters that have begun.
func (w *watch) report(c *call, l *lane.Lane, now throttle.Instant) {
	limit, used := nearest(l.Queue.State().Limits)
	differs := differing(l)
	w.mu.Lock()
	rate, usual, spikes := w.arrivals(observerOf(l).calls.Load(), now)
	near, spike, shade := w.near.begins(used >= nearShare, now), w.spike.begins(spikes, now), w.shade.begins(differs > differShare, now)
	w.mu.Unlock()
	if near {
		c.log(slog.LevelInfo, l, "weir: a limit is nearly used up", slog.String("limit", limit), slog.Float64("used", round(used)))
		telemetry.Near(c.ctx, l.Key, limit, used)
	}
	if spike {
		c.log(slog.LevelInfo, l, "weir: many more requests than usual", slog.Float64("per_second", round(rate)), slog.Float64("usual", round(usual)))
		telemetry.Spike(c.ctx, l.Key, rate, usual)
	}
	if shade {
		c.log(slog.LevelInfo, l, "weir: shadow limits decide otherwise", slog.Float64("share", round(differs)))
		telemetry.Differs(c.ctx, l.Key, differs)
	}
}

// arrivals returns how many calls came per second since the last look, how many usually do,
// and whether that is a spike. W.mu is held.
func (w *watch) arrivals(calls uint64, now throttle.Instant) (rate, usual float64, spikes bool) {
	if w.at == 0 {
		w.since, w.at, w.seen = now, now, calls
		return 0, 0, false
	}
	n, passed := calls-w.seen, max(now.Sub(w.at), 1).Seconds()
	rate, usual = float64(n)/passed, w.usual
	weight := -math.Expm1(-passed / min(spikeMemory, max(now.Sub(w.since), 1)).Seconds())
	w.usual += (rate - usual) * weight
	spikes = n >= spikeLeast && rate > spikeTimes*usual && w.at.Sub(w.since) >= spikeMemory
	w.at, w.seen = now, calls
	return rate, usual, spikes
}

// nearest returns the limit, among those that take long to be whole again, of which the
// greatest share is used, and that share.
func nearest(limits []throttle.LimitState) (limit string, used float64) {
	for _, l := range limits {
		if whole := float64(l.Limit.Capacity()) / l.Limit.PerSecond(); l.Utilization > used && whole >= nearLeast.Seconds() {
			limit, used = l.Limit.Label(), l.Utilization
		}
	}
	return limit, used
}

// differing returns the share of requests on which shadow limits decide otherwise than the
// enforced ones; zero if there are too few.
func differing(l *lane.Lane) float64 {
	if l.Shadow == nil {
		return 0
	}
	var all, otherwise uint64
	for live, candidates := range l.Shadow.Counts() {
		for candidate, n := range candidates {
			if all += n; live != candidate {
				otherwise += n
			}
		}
	}
	if all < differLeast {
		return 0
	}
	return float64(otherwise) / float64(all)
}

// made reports that the call is the first of a lane, and with which limits it was made.
func (c *call) made(l *lane.Lane) {
	if !c.t.logger().Enabled(c.ctx, slog.LevelDebug) && !telemetry.Recording(c.ctx) {
		return
	}
	limits := make([]string, 0, 4)
	for _, limit := range l.Limits() {
		limits = append(limits, limit.Label())
	}
	c.log(slog.LevelDebug, l, "weir: lane made", slog.Any("limits", limits))
	telemetry.Made(c.ctx, l.Key, limits)
}

// log logs what concerns a lane of the call.
func (c *call) log(level slog.Level, of *lane.Lane, what string, with ...slog.Attr) {
	if l := c.t.logger(); l.Enabled(c.ctx, level) {
		l.LogAttrs(c.ctx, level, what, append([]slog.Attr{slog.String("lane", of.Key)}, with...)...)
	}
}

// round returns a number for people, with three digits behind the point.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }
