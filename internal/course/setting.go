package course

import (
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// SettingOf returns what the learner needs of the configured limits: the slowest of those of up to
// a minute, to which refusals refer.
func SettingOf(limits []throttle.Limit) learn.Setting {
	var set learn.Setting
	if len(limits) > 0 {
		set.Configured = learn.AnyRate
	}
	for _, limit := range limits {
		limit = limit.Enforced()
		rate := limit.PerSecond()
		if unitOf(limit.Unit) != requests || limit.Per > time.Minute || rate >= set.Configured {
			continue
		}
		set.Configured, set.Burst = rate, float64(limit.Capacity())
	}
	return set
}
