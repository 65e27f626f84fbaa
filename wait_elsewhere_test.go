package weir_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A pause longer than MaxPause closes the lane of every process that shares its
// limits, and not of the one alone that was told.

// toldElsewhere returns two replicas of which the first sends the first call.
func toldElsewhere(t *testing.T, vendor *testserver.Vendor, limit throttle.Limit) (told, other *rig) {
	t.Helper()
	f := newFleet(t, 2, vendor, limit)
	return f.replicas[0], f.replicas[1]
}

func TestLongPauseToldElsewhereSendsLineAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{refuse(1, 1, "300")}}
		told, other := toldElsewhere(t, vendor, throttle.TokenBucket(1, time.Second, 1))
		first := told.start("first")
		time.Sleep(roundTrip) // it has its permit
		waiting := other.callers(t.Context(), 3)
		told.want("refused GET", <-first, 429)
		closed := told.now()
		ends := closed + roundTrip + 300*time.Second // dated from when the store was told
		for _, got := range waiting.wait() {
			wantPaused(t, "waiting GET", got, ends-got.at)
			if got.at != closed+2*roundTrip {
				t.Errorf("sent away at %v, want it once the store has confirmed the news, two round trips after %v", got.at, closed)
			}
		}
		time.Sleep(200 * time.Second)
		wantPaused(t, "later GET", other.get(t.Context(), "later"), ends-other.now())
		time.Sleep(ends - other.now() - 1)
		wantPaused(t, "last GET", other.get(t.Context(), "last"), 1)
		time.Sleep(time.Nanosecond)
		other.want("GET after the pause", other.get(t.Context(), "after"), 200)
		if got := len(vendor.Arrivals()); got != 2 {
			t.Errorf("arrivals = %d, want 2", got)
		}
	})
}

// Also where nobody has asked by the time when less than MaxPause is left.
func TestLongPauseToldElsewhereClosesIdleLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Service: 300 * time.Millisecond, Faults: []testserver.Fault{answered(2, testserver.Fault{Header: hints("300")})}}
		told, other := toldElsewhere(t, vendor, throttle.TokenBucket(100, time.Second, 1))
		other.want("GET", other.get(t.Context(), "before"), 200)
		told.want("refused GET", told.get(t.Context(), "refused"), 429)
		time.Sleep(250 * time.Second)
		wantPaused(t, "GET", other.get(t.Context(), "a"), 50*time.Second+roundTrip)
		time.Sleep(50*time.Second + roundTrip + time.Microsecond) // of which the instants of Redis are multiples
		opened := other.now()
		for _, got := range other.callers(t.Context(), 4).wait() {
			other.want("GET after the pause", got, 200)
		}
		// One until it is answered well; then the limit holds, which had
		// permits for the others before that.
		at := instants(vendor.Arrivals())[2:]
		if len(at) != 4 || at[0] != opened+roundTrip || at[1] < at[0]+300*time.Millisecond {
			t.Errorf("arrivals = %v, want the second no earlier than 300ms after the first, %v", at, opened+roundTrip)
		}
	})
}

// One of MaxPause is waited through wherever it was told.
func TestPauseOfMaxPauseToldElsewhereHoldsLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{refuse(1, 1, "120")}}
		told, other := toldElsewhere(t, vendor, throttle.TokenBucket(1, time.Second, 1))
		first := told.start("first")
		waiting := other.callers(t.Context(), 3)
		for _, got := range append(waiting.wait(), <-first) {
			other.want("GET", got, 200)
		}
		if got := vendor.Arrivals()[1].At; got < 120*time.Second {
			t.Errorf("second arrival at %v, want it after 120s", got)
		}
	})
}

// shared returns a store of one limiter, which cannot tell news of itself.
func shared(t *testing.T, limits ...throttle.Limit) throttle.Store {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("", limits...)
	if err != nil {
		t.Fatal(err)
	}
	return storeFunc(func(string, ...throttle.Limit) (throttle.Limiter, error) { return limiter, nil })
}

// Where nothing wakes the line, whoever asks the limiter finds out.
func TestLongPauseToldElsewhereIsFoundOutByAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{refuse(1, 1, "300")}}
		store := shared(t, throttle.TokenBucket(1, time.Second, 1))
		told := pipeRig(t, vendor, &weir.Transport{Store: store})
		other := pipeRig(t, vendor, &weir.Transport{Store: store})
		first := told.start("first")
		waiting := other.callers(t.Context(), 3)
		told.want("refused GET", <-first, 429)
		for _, got := range waiting.wait() {
			wantPaused(t, "waiting GET", got, 299*time.Second+10*time.Millisecond)
			if got.at != time.Second {
				t.Errorf("sent away at %v, want 1s, when the line asked again", got.at)
			}
		}
		wantPaused(t, "later GET", other.get(t.Context(), "later"), 299*time.Second+10*time.Millisecond)
		time.Sleep(299*time.Second + 10*time.Millisecond)
		other.want("GET after the pause", other.get(t.Context(), "after"), 200)
	})
}

// A response in hand is not thrown away for an attempt that the lane, closed
// elsewhere, would refuse.
func TestLongPauseToldElsewhereReturnsResponseInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{
			answered(1, testserver.Fault{Status: 500, Delay: time.Second}),
			answered(2, testserver.Fault{Header: hints("300")}),
		}}
		store := shared(t, throttle.TokenBucket(100, time.Second, 2))
		told := pipeRig(t, vendor, &weir.Transport{Store: store})
		other := pipeRig(t, vendor, &weir.Transport{Store: store, Retry: after(0)})
		failing := other.start("failing")
		told.want("refused GET", told.get(t.Context(), "refused"), 429)
		got := <-failing
		other.want("failed GET", got, 500)
		if got.at != time.Second || len(vendor.Arrivals()) != 2 {
			t.Errorf("answered at %v after %d arrivals, want 1s, 2", got.at, len(vendor.Arrivals()))
		}
	})
}

// A call that was in flight when its lane was closed does not open it.
func TestGoodAnswerInPauseLeavesLaneClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Service: 2 * time.Second, Faults: []testserver.Fault{
				answered(1, testserver.Fault{Header: hints("600")}),
				answered(3, testserver.Fault{Header: hints("600")}),
			}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 1)}})
		r.want("refused GET", r.get(t.Context(), "first"), 429)
		time.Sleep(600 * time.Second)
		slow := r.start("slow") // a second later the next one goes
		time.Sleep(time.Second)
		r.want("refused probe", r.get(t.Context(), "probe"), 429)
		r.want("slow GET", <-slow, 200)
		time.Sleep(590 * time.Second)
		wantPaused(t, "GET", r.get(t.Context(), "later"), 9*time.Second)
	})
}
