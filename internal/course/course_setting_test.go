package course

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A new process receives the state of a lane with any limits: a state that cannot be encoded would end what the
// processes learn together.
func TestStateOfAnyLimitsIsEncoded(t *testing.T) {
	tokens := throttle.TokenBucket(1000, time.Minute, 1000)
	tokens.Unit = "tokens"
	for name, limits := range map[string][]throttle.Limit{
		"no limit": nil, "10/s": {throttle.TokenBucket(10, time.Second, 5)}, "a day": {throttle.FixedWindow(1000, 24*time.Hour)}, "tokens": {tokens},
	} {
		state, read := learn.New(SettingOf(limits)), learn.State{}
		if err := read.Decode(state.Encode()); err != nil || read != state {
			t.Errorf("%s: Decode = %v, with %+v, want %+v", name, err, read.Setting, state.Setting)
		}
	}
}
