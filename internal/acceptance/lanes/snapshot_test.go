package lanes_test

import (
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

func TestSnapshotShowsStateOfEveryLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := throttle.TokenBucket(1, time.Second, 2).Named("per second")
		r := harness.PipeRig(t,
			&testserver.Vendor{Service: time.Minute, Faults: []testserver.Fault{{First: 5, Last: 5, Do: testserver.Answer, Header: harness.Hints("90")}}},
			&weir.Transport{Limits: []throttle.Limit{limit}})
		if got := r.Transport.Snapshot(); len(got) != 0 {
			t.Errorf("Snapshot() before use = %+v, want none", got)
		}
		callers := r.Callers(t.Context(), 4)
		time.Sleep(2500 * time.Millisecond) // all four are in flight
		paused := make(chan harness.Answer, 1)
		go func() { paused <- r.To("paused.test") }()
		synctest.Wait()
		states := r.Transport.Snapshot()
		if len(states) != 2 {
			t.Fatalf("lanes = %d, want 2", len(states))
		}
		lane := states[0]
		if lane.Key != "paused.test" || lane.Paused != 90*time.Second || lane.Requests != 1 || lane.Waiting != 1 {
			t.Errorf("paused lane = %+v, want one waiting for 90s", lane)
		}
		lane = states[1]
		if lane.Key != "vendor.test" || lane.Paused != 0 || lane.Requests != 4 || lane.Waiting != 0 || lane.Store != nil {
			t.Errorf("lane = %+v, want four in flight", lane)
		}
		if got := lane.Limits[0]; got.Limit.Name != "per second" || got.Headroom != 0.5 || got.Next != 500*time.Millisecond || got.Utilization != 0.75 {
			t.Errorf("limit = %+v, want headroom 0.5, next 500ms, utilization 0.75", got)
		}
		callers.Wait()
		<-paused
		for _, lane := range r.Transport.Snapshot() {
			if lane.Requests != 0 || lane.Waiting != 0 {
				t.Errorf("lane at rest = %+v, want it empty", lane)
			}
		}
	})
}

func TestSnapshotWhileRunning(t *testing.T) {
	r := harness.SocketRig(t, &testserver.Vendor{}, &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(1000, time.Second, 1000)}})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				r.Want("GET", r.Get(t.Context(), "a"), 200)
				r.Transport.Snapshot()
			}
		})
	}
	wg.Wait()
}

func TestShadowCountsAndHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 3)},
			Shadow: []throttle.Limit{throttle.TokenBucket(1, time.Second, 1)},
		})
		for range 3 {
			r.Want("GET", r.Get(t.Context(), "a"), 200)
		}
		r.Want("GET of cost 2", r.Get(weir.WithCost(t.Context(), 2), "b"), 200)
		if got := r.Now(); got != 200*time.Millisecond {
			t.Errorf("done at %v, want 200ms: the shadow delays no call", got)
		}
		want := []weir.ShadowCount{
			{Live: weir.Admitted, Candidate: weir.Admitted, Requests: 1},
			{Live: weir.Admitted, Candidate: weir.Held, Requests: 2},
			{Live: weir.Held, Candidate: weir.Rejected, Requests: 1},
		}
		if got := r.Transport.Snapshot()[0].Shadow; !reflect.DeepEqual(got, want) {
			t.Errorf("Shadow = %+v, want %+v", got, want)
		}
	})
}
