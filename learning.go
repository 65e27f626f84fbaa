package weir

import (
	"math"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// Learning says whether a lane learns its vendor's limit from the answers.
type Learning uint8

// The ways to learn.
const (
	// LearnOn finds the limit of a lane for which none is configured, or too high
	// a one, and holds calls to it. A window that the vendor tells is spent as
	// calls come.
	LearnOn Learning = iota
	// LearnSpread is LearnOn, but spreads calls over what is left of such a window.
	LearnSpread
	// LearnOff learns nothing: a refusal pauses the lane for the time it tells,
	// and slows the configured limits for a while.
	LearnOff
)

// settingOf returns what the learner is told of the configured limits: the slowest
// rate of those of up to a minute, which is what a refusal concerns.
func settingOf(limits []throttle.Limit) learn.Setting {
	var set learn.Setting
	if len(limits) > 0 {
		set.Configured = math.Inf(1)
	}
	for _, limit := range limits {
		rate := float64(limit.Permits) / limit.Per.Seconds()
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
