package shaping_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestTryNTakesWhatIsAtHandOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(10, time.Second, 2))
		try := func(what string, n int, want bool) {
			t.Helper()
			if got := q.TryN(n); got != want {
				t.Errorf("%s: TryN(%d) = %v, want %v", what, n, got, want)
			}
		}
		try("a full bucket", 3, false)
		try("a full bucket", 2, true)
		try("an empty bucket", 1, false)
		try("an empty bucket", 0, true)
		time.Sleep(100*time.Millisecond - 1)
		try("a nanosecond early", 1, false)
		time.Sleep(time.Nanosecond)
		try("in time", 1, true)
		waits := make(chan error, 1)
		go func() { waits <- q.WaitN(t.Context(), 2) }()
		synctest.Wait()
		time.Sleep(150 * time.Millisecond) // a permit and a half, for which another waits
		try("behind another", 1, false)
		try("behind another", 0, false)
		if err := <-waits; err != nil {
			t.Error(err)
		}
		try("after it", 1, false)
		time.Sleep(time.Second)
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		try("closed", 1, false)
	})
}
