package pauses_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A pause longer than MaxPause closes the lane of every process that shares its limits, not only of
// the process that was refused.

// toldElsewhere returns two replicas of which the first sends the first call.
func toldElsewhere(t *testing.T, vendor *testserver.Vendor, limit throttle.Limit) (told, other *harness.Rig) {
	t.Helper()
	f := harness.NewFleet(t, 2, vendor, limit)
	return f.Replicas[0], f.Replicas[1]
}

func TestLongPauseAnnouncedElsewhereSendsLineAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "300")}}
		told, other := toldElsewhere(t, vendor, throttle.TokenBucket(1, time.Second, 1))
		first := told.Start("first")
		time.Sleep(harness.RoundTrip) // it has its permit
		waiting := other.Callers(t.Context(), 3)
		told.Want("refused GET", <-first, 429)
		closed := told.Now()
		ends := closed + harness.RoundTrip + 300*time.Second // dated from the report to the store
		for _, got := range waiting.Wait() {
			harness.WantPaused(t, "waiting GET", got, ends-got.At)
			if got.At != closed+2*harness.RoundTrip {
				t.Errorf("rejected at %v, want it once the store has confirmed the message, two round trips after %v", got.At, closed)
			}
		}
		time.Sleep(200 * time.Second)
		harness.WantPaused(t, "later GET", other.Get(t.Context(), "later"), ends-other.Now())
		time.Sleep(ends - other.Now() - 1)
		harness.WantPaused(t, "last GET", other.Get(t.Context(), "last"), 1)
		time.Sleep(time.Nanosecond)
		other.Want("GET after the pause", other.Get(t.Context(), "after"), 200)
		if got := len(vendor.Arrivals()); got != 2 {
			t.Errorf("arrivals = %d, want 2", got)
		}
	})
}

// The same if no call has asked by the time that less than MaxPause is left.
func TestLongPauseAnnouncedElsewhereClosesIdleLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Service: 300 * time.Millisecond, Faults: []testserver.Fault{harness.Answered(2, testserver.Fault{Header: harness.Hints("300")})}}
		told, other := toldElsewhere(t, vendor, throttle.TokenBucket(100, time.Second, 1))
		other.Want("GET", other.Get(t.Context(), "before"), 200)
		told.Want("refused GET", told.Get(t.Context(), "refused"), 429)
		time.Sleep(250 * time.Second)
		harness.WantPaused(t, "GET", other.Get(t.Context(), "a"), 50*time.Second+harness.RoundTrip)
		time.Sleep(50*time.Second + harness.RoundTrip + time.Microsecond) // the unit of Redis's instants
		opened := other.Now()
		for _, got := range other.Callers(t.Context(), 4).Wait() {
			other.Want("GET after the pause", got, 200)
		}
		// One until it is answered well; then the limit applies, which had permits for the others
		// before.
		at := harness.Instants(vendor.Arrivals())[2:]
		if len(at) != 4 || at[0] != opened+harness.RoundTrip || at[1] < at[0]+300*time.Millisecond {
			t.Errorf("arrivals = %v, want the second no earlier than 300ms after the first, %v", at, opened+harness.RoundTrip)
		}
	})
}

// A pause of MaxPause is waited for, whichever replica was refused.
func TestPauseOfMaxPauseAnnouncedElsewhereHoldsLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "120")}}
		told, other := toldElsewhere(t, vendor, throttle.TokenBucket(1, time.Second, 1))
		first := told.Start("first")
		waiting := other.Callers(t.Context(), 3)
		for _, got := range append(waiting.Wait(), <-first) {
			other.Want("GET", got, 200)
		}
		if got := vendor.Arrivals()[1].At; got < 120*time.Second {
			t.Errorf("second arrival at %v, want it after 120s", got)
		}
	})
}

// shared returns a store of one limiter, which cannot send messages to itself.
func shared(t *testing.T, limits ...throttle.Limit) throttle.Store {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("", limits...)
	if err != nil {
		t.Fatal(err)
	}
	return harness.StoreFunc(func(string, ...throttle.Limit) (throttle.Limiter, error) { return limiter, nil })
}

// If nothing wakes the line, the next call to the limiter detects it.
func TestLongPauseAnnouncedElsewhereIsFoundOutByAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "300")}}
		store := shared(t, throttle.TokenBucket(1, time.Second, 1))
		told := harness.PipeRig(t, vendor, &weir.Transport{Store: store})
		other := harness.PipeRig(t, vendor, &weir.Transport{Store: store})
		first := told.Start("first")
		waiting := other.Callers(t.Context(), 3)
		told.Want("refused GET", <-first, 429)
		for _, got := range waiting.Wait() {
			harness.WantPaused(t, "waiting GET", got, 299*time.Second+10*time.Millisecond)
			if got.At != time.Second {
				t.Errorf("sent away at %v, want 1s, when the line asked again", got.At)
			}
		}
		harness.WantPaused(t, "later GET", other.Get(t.Context(), "later"), 299*time.Second+10*time.Millisecond)
		time.Sleep(299*time.Second + 10*time.Millisecond)
		other.Want("GET after the pause", other.Get(t.Context(), "after"), 200)
	})
}

// A response in hand is not discarded for an attempt that the lane, closed elsewhere, would reject.
func TestLongPauseAnnouncedElsewhereReturnsResponseInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{
			harness.Answered(1, testserver.Fault{Status: 500, Delay: time.Second}),
			harness.Answered(2, testserver.Fault{Header: harness.Hints("300")}),
		}}
		store := shared(t, throttle.TokenBucket(100, time.Second, 2))
		told := harness.PipeRig(t, vendor, &weir.Transport{Store: store})
		other := harness.PipeRig(t, vendor, &weir.Transport{Store: store, Retry: harness.After(0)})
		failing := other.Start("failing")
		told.Want("refused GET", told.Get(t.Context(), "refused"), 429)
		got := <-failing
		other.Want("failed GET", got, 500)
		if got.At != time.Second || len(vendor.Arrivals()) != 2 {
			t.Errorf("answered at %v after %d arrivals, want 1s, 2", got.At, len(vendor.Arrivals()))
		}
	})
}

// A call in flight when its lane was closed does not open it.
func TestGoodAnswerInPauseLeavesLaneClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Service: 2 * time.Second, Faults: []testserver.Fault{
				harness.Answered(1, testserver.Fault{Header: harness.Hints("600")}),
				harness.Answered(3, testserver.Fault{Header: harness.Hints("600")}),
			}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 1)}})
		r.Want("refused GET", r.Get(t.Context(), "first"), 429)
		time.Sleep(600 * time.Second)
		slow := r.Start("slow") // the next one departs a second later
		time.Sleep(time.Second)
		r.Want("refused probe", r.Get(t.Context(), "probe"), 429)
		r.Want("slow GET", <-slow, 200)
		time.Sleep(590 * time.Second)
		harness.WantPaused(t, "GET", r.Get(t.Context(), "later"), 9*time.Second)
	})
}
