package course_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// Once the reports are forgotten, calls depart, even if each answer had reported.
func TestForgottenQuotaHoldsNoCall(t *testing.T) {
	limit := throttle.TokenBucket(1000, time.Second, 1000)
	limit.Unit = "tokens"
	b := bankOf([]throttle.Limit{limit}, false, true)
	now := throttle.InstantOf(time.Now())
	for i := range 3 {
		at := now.Add(time.Duration(i) * time.Second)
		left := learn.Quota{Unit: "tokens", Limit: 1000, Remaining: 400, Reset: time.Second, HasLimit: true, HasRemaining: true, HasReset: true}
		b.land(at.Add(10*time.Millisecond), b.depart(at, 600), left)
	}
	b.Forget()
	if f, _ := b.Ask(b.turn(now.Add(time.Minute), 600)); f.At > now.Add(time.Minute) {
		t.Errorf("held until %v, with no call in flight", f.At)
	}
}
