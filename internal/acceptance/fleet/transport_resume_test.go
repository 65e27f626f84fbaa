package fleet_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// A long pause closes the lane in all processes, and ends in all of them when one ends it.
func TestResumeOpensTheFleet(t *testing.T) {
	for resumer := range 2 {
		synctest.Test(t, func(t *testing.T) {
			f := harness.NewFleet(t, 2, &testserver.Vendor{}, harness.Every(10*time.Millisecond)...)
			for _, r := range f.Replicas {
				r.Want("GET", r.Get(t.Context(), "first"), 200)
			}
			key := f.Replicas[0].Transport.Snapshot()[0].Key
			if err := f.Replicas[0].Transport.Pause(key, time.Hour); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			for i, r := range f.Replicas {
				if got := r.Get(t.Context(), "paused"); !errors.Is(got.Err, weir.ErrPaused) {
					t.Errorf("replica %d: GET in the pause = %d, %v, want ErrPaused", i, got.Status, got.Err)
				}
			}
			if err := f.Replicas[resumer].Transport.Resume(key); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			for i, r := range f.Replicas {
				if got := r.Get(t.Context(), "resumed"); got.Status != 200 {
					t.Errorf("replica %d: GET a second after replica %d ended the pause = %d, %v, want 200", i, resumer, got.Status, got.Err)
				}
			}
		})
	}
}
