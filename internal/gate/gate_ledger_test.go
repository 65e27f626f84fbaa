package gate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// With two left, and two in flight, the next call waits for an answer, but no longer than a hanging
// call is counted.
func TestQuotaHoldsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := throttle.Local{}.Limiter("test")
		if err != nil {
			t.Fatal(err)
		}
		s := course.NewLedgers(nil, nil, true, false)
		l := lineFor(t, NewGate(limiter, nil, s, time.Minute), func(*Gate) {})
		id := l.want(0)
		s.Read(l.Now(), &course.Answer{ID: id, Quotas: []learn.Quota{{Limit: 10, Remaining: 2, Reset: time.Minute, HasLimit: true, HasRemaining: true, HasReset: true}}})
		l.land(id, true)
		id = l.want(0)
		l.want(0)
		if f := l.Gate.Forecast(l.Now(), l.request(9)); f.Reason != throttle.ReasonConcurrency || f.At > l.Now() {
			t.Errorf("Forecast = %+v, want the reason and no instant", f)
		}
		time.AfterFunc(40*time.Millisecond, func() { l.land(id, true) }) // it reports nothing
		l.want(40 * time.Millisecond)
		l.want(time.Second) // one of the two hangs
		if n := l.await(l.Now(), 5, nil); n != 0 {
			t.Errorf("permits are fetched for %d, want 0", n)
		}
	})
}
