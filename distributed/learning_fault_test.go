package distributed_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
)

// The clock of Redis is stepped back by an hour, and forward again, once a rate was
// learned: nobody waits for it, and what was learned is known.
func TestASteppedClockStopsNobodyWhoHasLearned(t *testing.T) {
	if raced {
		t.Log("the detector makes the script's interpreter ten times slower")
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := newCompany(t)
		for range 3 {
			f.join()
		}
		f.drain(16, even(900, 3)...)
		var skew atomic.Int64
		for _, store := range f.stores {
			distributed.Skew(store, &skew)
		}
		for _, by := range []time.Duration{-time.Hour, 0} {
			before := f.refused()
			skew.Store(by.Microseconds())
			took := f.drain(16, even(300, 3)...) // in a second and a half
			if refused := f.refused() - before; took > 4*time.Second || refused > 10 {
				t.Errorf("with the clock at %v, 300 calls took %v, with %d refused", by, took, refused)
			}
			f.agree()
		}
	})
}
