package distributed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// Eight processes share a slow bucket. Each holds one permit ahead, so the newest reading is eight
// permits old, and a faster pace would swing between too many calls and none. A process's reports
// go with the call for its next permit, not in a call of their own.
func TestSlowBucketIsSharedEvenly(t *testing.T) {
	if tooSlowHere(t) {
		return
	}
	for _, c := range []struct {
		name        string
		rate, burst int
		styles      []testserver.Style
		scripts     float64 // scripts per success, at most
	}{
		{"bare 50/s", 50, 5, nil, 1.25},
		{"ietf 20/s", 20, 10, []testserver.Style{testserver.RateLimit, testserver.RetryAfterSeconds}, 1.25},
		{"x-ratelimit 10/s", 10, 20, []testserver.Style{testserver.XRateLimitEpoch, testserver.RetryAfterSeconds}, 1.25},
		{"coarse 20/s", 20, 10, []testserver.Style{testserver.Coarse}, 1.25},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newCompany(t, c.styles...)
				f.vendor.SetLimits(testserver.TokenBucket(c.rate, time.Second, c.burst))
				for range 8 {
					f.join()
				}
				n := 10 * c.rate
				f.drain(16, even(n, 8)...)
				scripts, served, refused := f.redis.Calls(), f.served.Load(), f.refused()
				took := f.drain(16, even(n, 8)...).Seconds() / 10
				each := float64(f.redis.Calls()-scripts) / float64(f.served.Load()-served)
				t.Logf("%.3f of the ideal, %d refused, %.2f scripts a success", took, f.refused()-refused, each)
				if took > 1.1 || f.refused()-refused > 5 || each > c.scripts {
					t.Errorf("%.3f of the ideal, %d refused, %.2f scripts a success; want 1.1, 5 and %v at most",
						took, f.refused()-refused, each, c.scripts)
				}
			})
		})
	}
}

// A bucket holds fewer permits than there are processes. A limit learned while few of them called
// does not bound all of them later. The ideal is 20 s. It is 45 s if a reported rate is taken for
// the bucket's size, or an error of the slope is never measured again.
func TestSmallBucketOfManyProcessesIsUsed(t *testing.T) {
	if tooSlowHere(t) {
		return
	}
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			f := newCompany(t, testserver.RateLimit, testserver.RetryAfterSeconds)
			f.vendor.SetLimits(testserver.TokenBucket(50, time.Second, 5))
			for range 8 {
				f.join()
			}
			f.drain(16, even(1000, 8)...) // until one process remains
			took := f.drain(16, even(1000, 8)...)
			t.Logf("1,000 calls at 50/s took %v", took)
			if took > 30*time.Second {
				t.Errorf("1,000 calls at 50/s took %v", took)
			}
		})
	}
}
