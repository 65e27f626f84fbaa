package limitertest

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/throttle"
)

// A Factory makes a limiter, whole at first, whose only clock is the given instants.
type Factory func(limits ...throttle.Limit) throttle.Limiter

var algorithms = []throttle.Algorithm{
	throttle.AlgorithmTokenBucket, throttle.AlgorithmLeakyBucket, throttle.AlgorithmFixedWindow,
	throttle.AlgorithmSlidingLog, throttle.AlgorithmSlidingWindow, throttle.AlgorithmGCRA,
}

// A Suite is the limiters under test, and how they are tested.
type Suite struct {
	// Make makes them.
	Make Factory
	// Histories is how many random histories each algorithm runs. Zero: only those that rapid
	// draws, and a few long lines.
	Histories int
	// Tick is the granularity of the limiters; it divides a microsecond. They are called at whole
	// ticks only, and return the first tick at or after the exact instant. A bucket must keep its
	// bound within one tick of rounding, a window exactly. Zero means a nanosecond.
	Tick time.Duration
}

// Decisions tests that the limiters decide by the rules, each limiter of an
// algorithm alone and random sets together.
func (s Suite) Decisions(t *testing.T) {
	s.Tick = max(s.Tick, 1)
	for _, r := range slices.Concat(granting, returning, changing, edges) {
		t.Run(r.text, func(t *testing.T) { r.test(t, s) })
	}
	for _, a := range algorithms {
		t.Run("every history of "+a.String()+" keeps the bound", func(t *testing.T) {
			t.Parallel()
			s.bound(t, func(draw source) []throttle.Limit { return []throttle.Limit{draw.limit(a)} })
		})
	}
	t.Run("every history of a set keeps all its bounds", func(t *testing.T) {
		t.Parallel()
		s.bound(t, source.set)
	})
	t.Run("a line reaches the rate", func(t *testing.T) {
		t.Parallel()
		s.liveness(t)
	})
}

// first returns the first tick from an instant on.
func (s Suite) first(at throttle.Instant) throttle.Instant {
	tick := throttle.Instant(s.Tick)
	return at + (tick-at%tick)%tick
}

// whole reports whether a limiter may return the instant.
func (s Suite) whole(at throttle.Instant) bool {
	return at%throttle.Instant(s.Tick) == 0 || at == throttle.Never
}

// set draws two to four limits of any algorithms.
func (s source) set() []throttle.Limit {
	limits := make([]throttle.Limit, s.between(2, 4))
	for i := range limits {
		limits[i] = s.limit(algorithms[s(int64(len(algorithms)))])
	}
	return limits
}

// bound runs random histories. Every third has only takes, so that its decisions are judged exactly
// to the end. Seeded ones are the same in each run. Rapid's are new, unless RAPID_SEED is set, and
// a failure is printed with its seed.
func (s Suite) bound(t *testing.T, limits func(source) []throttle.Limit) {
	t.Helper()
	live := func(seed int, verbose bool) string {
		draw, m := generator(uint64(seed)), allMoves
		if seed%3 == 0 {
			m = moves{}
		}
		return s.run(draw, draw.reserving(limits(draw)), m, verbose)
	}
	for seed := range s.Histories {
		if broken := live(seed, false); broken != "" {
			t.Fatalf("history %d: %s\nand lived again: %s", seed, broken, live(seed, true))
		}
	}
	t.Logf("%d random histories", s.Histories)
	rapid.Check(t, func(rt *rapid.T) {
		draw := source(func(n int64) int64 { return rapid.Int64Range(0, n-1).Draw(rt, "draw") })
		if broken := s.run(draw, draw.reserving(limits(draw)), allMoves, true); broken != "" {
			rt.Fatal(broken)
		}
	})
}
