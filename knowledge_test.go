package weir_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// fifty is a vendor of a hidden 50/s.
func fifty() *testserver.Vendor {
	return &testserver.Vendor{
		Limits:  []testserver.Limit{testserver.TokenBucket(50, time.Second, 10)},
		Service: 5 * time.Millisecond,
	}
}

// learned returns what the only lane has learned.
func (r *rig) learned() weir.Learned {
	r.Helper()
	states := r.transport.Snapshot()
	if len(states) != 1 {
		r.Fatalf("lanes = %d, want 1", len(states))
	}
	return states[0].Learned
}

func TestSnapshotTellsWhatWasLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := learning(pipeRig(t, fifty(), new(weir.Transport)))
		r.want("GET", r.get(t.Context(), ""), 200)
		if got := r.learned(); got != (weir.Learned{}) {
			t.Errorf("learned of one call = %+v, want nothing", got)
		}
		drainBy(r, 1000)
		if got := r.learned(); math.Abs(got.Rate-50) > 2.5 || got.InFlight != 0 || got.Told {
			t.Errorf("learned of a hidden 50/s = %+v, want 50 +- 5%%", got)
		}
	})
}

func TestSnapshotTellsProbing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := learning(pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer}}}, new(weir.Transport)))
		r.want("GET", r.get(t.Context(), ""), 429)
		if got := r.learned(); got != (weir.Learned{Probing: true}) {
			t.Errorf("learned of refusals alone = %+v, want Probing", got)
		}
	})
}

// A lane that has forgotten lets calls go as a new one does, and learns again.
func TestForgetForgetsTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(2, time.Second, 1)}, Service: 5 * time.Millisecond}
		r := learning(pipeRig(t, vendor, new(weir.Transport)))
		drainBy(r, 100)
		vendor.SetLimits()
		key := r.transport.Snapshot()[0].Key
		if err := r.transport.Forget(key); err != nil {
			t.Errorf("Forget = %v", err)
		}
		if got := r.learned(); got != (weir.Learned{}) {
			t.Errorf("learned after Forget = %+v, want nothing", got)
		}
		began := r.now()
		drainBy(r, 100)
		if took := r.now() - began; took > time.Second {
			t.Errorf("100 calls after Forget took %v, want a second at most", took)
		}
	})
}

func TestForgetEndsPauses(t *testing.T) {
	for name, limits := range map[string][]throttle.Limit{"free": nil, "limited": every(time.Millisecond)} {
		synctest.Test(t, func(t *testing.T) {
			r := learning(pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{refuse(1, 1, "60")}}, &weir.Transport{Limits: limits}))
			callers := r.callers(t.Context(), 3)
			time.AfterFunc(2*time.Second, func() {
				if err := r.transport.Forget(r.transport.Snapshot()[0].Key); err != nil {
					t.Errorf("Forget = %v", err)
				}
			})
			for _, a := range callers.wait() {
				r.want(name+" GET", a, 200)
				if a.at > 3*time.Second {
					t.Errorf("%s: answered at %v, want soon after Forget at 2s", name, a.at)
				}
			}
		})
	}
}
