package telemetry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// wantCounts fails the test unless the only lane has these counts.
func wantCounts(r *harness.Rig, what string, want weir.Counts) {
	r.Helper()
	if got := r.Transport.Snapshot()[0].Counts; got != want {
		r.Errorf("%s: Counts = %+v, want %+v", what, got, want)
	}
}

func TestSnapshotCountsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(1, 10*time.Second, 1)}, Line: weir.Line{MaxWaiting: 2}})
		r.Spend()
		r.Get(weir.WithMaxWait(t.Context(), time.Second), "would wait too long")
		r.Get(weir.WithCost(t.Context(), 2), "oversized")
		gone, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		r.Get(gone, "came too late")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		waiting := r.Callers(ctx, 2)
		r.Get(t.Context(), "beyond MaxWaiting")
		wantCounts(r, "in line", weir.Counts{Admitted: 1, Rejected: 3})
		waiting.Wait()
		wantCounts(r, "canceled", weir.Counts{Admitted: 1, Rejected: 3, Held: 2, Waited: 6 * time.Second})
		<-r.Start("patient") // until 10s
		wantCounts(r, "granted", weir.Counts{Admitted: 1, Rejected: 3, Held: 3, Waited: 13 * time.Second})
		closing := r.Start("closing")
		time.Sleep(time.Second)
		r.Transport.Close()
		<-closing
		wantCounts(r, "closed", weir.Counts{Admitted: 1, Rejected: 4, Held: 4, Waited: 14 * time.Second})
	})
}

// A retry is a turn of its own.
func TestSnapshotCountsRefusalsAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "5")}}, &weir.Transport{})
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		wantCounts(r, "refused once", weir.Counts{Admitted: 1, Held: 1, Refused: 1, Retried: 1, Waited: 5 * time.Second})
	})
}
