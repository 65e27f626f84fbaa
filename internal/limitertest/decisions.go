package limitertest

import (
	"slices"
	"testing"

	"github.com/weirgo/weir/throttle"
	"pgregory.net/rapid"
)

// A Factory makes a limiter, whole at first, that knows no clock but the
// instants it is given.
type Factory func(limits ...throttle.Limit) throttle.Limiter

var algorithms = []throttle.Algorithm{
	throttle.AlgorithmTokenBucket, throttle.AlgorithmLeakyBucket, throttle.AlgorithmFixedWindow,
	throttle.AlgorithmSlidingLog, throttle.AlgorithmSlidingWindow, throttle.AlgorithmGCRA,
}

// Decisions tests that the limiters decide by the rules, each limiter of an
// algorithm alone and random sets together, over so many random histories of
// each. The limiters need throttle's Refunder, Settler, Reconciler, Tuner,
// Reader, Forecaster and Tolerant too.
func Decisions(t *testing.T, histories int, make Factory) {
	for _, r := range slices.Concat(granting, returning, changing) {
		t.Run(r.text, func(t *testing.T) { r.test(t, make) })
	}
	for _, a := range algorithms {
		t.Run("every history of "+a.String()+" keeps the bound", func(t *testing.T) {
			t.Parallel()
			bound(t, histories, make, func(s source) []throttle.Limit { return []throttle.Limit{s.limit(a)} })
		})
	}
	t.Run("every history of a set keeps all its bounds", func(t *testing.T) {
		t.Parallel()
		bound(t, histories, make, source.set)
	})
	t.Run("a line reaches the rate", func(t *testing.T) {
		t.Parallel()
		liveness(t, histories/10, make)
	})
}

// set draws two to four limits of any algorithms.
func (s source) set() []throttle.Limit {
	limits := make([]throttle.Limit, s.between(2, 4))
	for i := range limits {
		limits[i] = s.limit(algorithms[s(int64(len(algorithms)))])
	}
	return limits
}

// bound lives random histories. Every third has nothing but takes, so that its
// decisions are judged exactly to the end.
func bound(t *testing.T, histories int, make Factory, limits func(source) []throttle.Limit) {
	t.Helper()
	live := func(seed int, told bool) string {
		s, m := generator(uint64(seed)), allMoves
		if seed%3 == 0 {
			m = moves{}
		}
		return run(s, limits(s), m, make, told)
	}
	for seed := range histories {
		if live(seed, false) != "" {
			t.Fatalf("history %d: %s", seed, live(seed, true))
		}
	}
	t.Logf("%d random histories", histories)
	rapid.Check(t, func(rt *rapid.T) {
		s := source(func(n int64) int64 { return rapid.Int64Range(0, n-1).Draw(rt, "draw") })
		if broken := run(s, limits(s), allMoves, make, true); broken != "" {
			rt.Fatal(broken)
		}
	})
}
