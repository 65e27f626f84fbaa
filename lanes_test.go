package weir

import (
	"testing"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// What a Transport sets for its lines, the queue of each lane is given.
func TestQueuesHaveTheTransportsFields(t *testing.T) {
	limiter, err := throttle.Local{}.Limiter("test")
	if err != nil {
		t.Fatal(err)
	}
	tr := &Transport{
		Line: Line{MaxWaiting: 7, MaxWait: 2 * time.Second, MaxForecast: 3 * time.Second, MaxWaitingBytes: 11, Overflow: shaping.OverflowShedOldest, LowPriorityShare: 0.25, PrecisePacing: true},
	}
	q := shaping.NewQueue(limiter)
	tr.settings().SetQueue(q)
	if q.MaxWaiting != 7 || q.MaxWait != 2*time.Second || q.MaxForecast != 3*time.Second || q.MaxWaitingBytes != 11 ||
		q.Overflow != shaping.OverflowShedOldest || q.LowPriorityShare != 0.25 || !q.PrecisePacing {
		t.Errorf("a queue has MaxWaiting %d, MaxWait %v, MaxForecast %v, MaxWaitingBytes %d, Overflow %v, LowPriorityShare %g, PrecisePacing %v, want the Transport's",
			q.MaxWaiting, q.MaxWait, q.MaxForecast, q.MaxWaitingBytes, q.Overflow, q.LowPriorityShare, q.PrecisePacing)
	}
}
