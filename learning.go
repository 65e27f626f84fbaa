package weir

import (
	"math"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// Learning says whether a lane learns its server's limit from the answers.
type Learning uint8

// The ways to learn.
const (
	// LearnOn finds a limit that nobody configured, or that was configured too
	// high, and holds the lane's calls to it. A window that the server tells is
	// spent as calls come.
	LearnOn Learning = iota
	// LearnSpread is LearnOn, but calls are spread evenly over the rest of such a
	// window.
	LearnSpread
	// LearnOff learns nothing. A refusal pauses the lane for the time that it
	// tells, and slows the configured limits for a while.
	LearnOff
)

// settingOf returns what the learner needs of the configured limits: the
// slowest of those of up to a minute. Refusals concern that one.
func settingOf(limits []throttle.Limit) learn.Setting {
	var set learn.Setting
	if len(limits) > 0 {
		set.Configured = math.Inf(1)
	}
	for _, limit := range limits {
		rate := limit.PerSecond()
		if unitOf(limit) != "requests" || limit.Per > time.Minute || rate >= set.Configured {
			continue
		}
		set.Configured, set.Burst = rate, float64(max(limit.Burst, 1))
		if limit.Algorithm != throttle.AlgorithmTokenBucket && limit.Algorithm != throttle.AlgorithmGCRA && limit.Algorithm != throttle.AlgorithmLeakyBucket {
			set.Burst = float64(limit.Permits)
		}
	}
	return set
}
