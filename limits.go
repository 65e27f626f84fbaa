package weir

import (
	"fmt"
	"slices"

	"github.com/weirgo/weir/throttle"
)

// SetLimits replaces Limits while running, in every lane and for lanes to
// come. Everybody in line is timed anew, faster or slower; what was used stays
// used, and nothing is granted for the change. Where LimitsFor names limits of
// its own for a key, they stay. With Cost set every unit that was limited must
// go on to be, for requests in line were priced in it. The error says what does
// not validate, and then nothing has changed, or which lane's limiter cannot be
// tuned.
func (t *Transport) SetLimits(limits ...throttle.Limit) error {
	t.once.Do(t.init)
	limits = slices.Clone(limits) // the caller may change theirs
	if _, err := throttle.Resolve(limits...); err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	if _, err := t.lanes.settings.inPlace(*t.limits.Load(), limits); err != nil {
		return fmt.Errorf("weir: %w", err)
	}
	t.limits.Store(&limits)
	return t.lanes.retune()
}

// Reload asks LimitsFor again for every lane, and tunes those whose limits
// have changed. A lane whose new limits do not validate keeps its own; the
// error names it.
func (t *Transport) Reload() error {
	t.once.Do(t.init)
	return t.lanes.retune()
}
