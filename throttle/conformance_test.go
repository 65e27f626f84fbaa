package throttle_test

import (
	"testing"

	"github.com/weirgo/weir/internal/limitertest"
	"github.com/weirgo/weir/throttle"
)

func TestDecisions(t *testing.T) {
	limitertest.Decisions(t, 10_000, throttle.NewAt)
}
