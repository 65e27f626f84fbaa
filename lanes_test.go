package weir

import (
	"testing"
	"time"

	"github.com/weirgo/weir/shaping"
)

// The lanes get the Transport's settings for its lines.
func TestQueuesHaveTheTransportsFields(t *testing.T) {
	line := Line{MaxWaiting: 7, MaxWait: 2 * time.Second, MaxForecast: 3 * time.Second, MaxWaitingBytes: 11, Overflow: shaping.OverflowShedOldest, LowPriorityShare: 0.25, PrecisePacing: true}
	if got := (&Transport{Line: line}).settings().Line; got != line {
		t.Errorf("lanes have the line %+v, want the Transport's, %+v", got, line)
	}
}
