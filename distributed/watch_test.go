package distributed_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/throttle"
)

// A watchLog records what a limiter reports to its watch.
type watchLog struct {
	mu     sync.Mutex
	calls  []store.Call
	events []store.Event
}

func (w *watchLog) watch(of interface{ Watch(store.Watch) }) {
	of.Watch(store.Watch{
		Called: func(c store.Call) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.calls = append(w.calls, c)
		},
		Strayed: func(e store.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
	})
}

// taken returns and clears the events since its last call.
func (w *watchLog) taken() []store.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

// Each way in which replicas diverge is reported once.
func TestWatchReceivesHowReplicasStray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, 2*time.Millisecond, throttle.TokenBucket(1, time.Minute, 100))
		var log watchLog
		log.watch(f.limiters[0].(store.Limiter))
		var ahead atomic.Int64
		distributed.Skew(f.stores[0], &ahead)
		call := func(want ...store.Event) {
			t.Helper()
			for range 3 { // a repeated event is reported once
				time.Sleep(time.Minute)
				if err := f.queues[0].Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := log.taken(); !slices.Equal(got, want) {
				t.Errorf("reported %q, want %q", got, want)
			}
		}
		call()
		f.server.Forget()
		call(store.EventStateLost)
		ahead.Store(int64(-10 * time.Second / time.Microsecond))
		call(store.EventClockStepped)
		ahead.Store(int64(-9900 * time.Millisecond / time.Microsecond)) // no more than a one-way trip may take
		call()
		ahead.Store(0)
		call(store.EventClockStepped)
		if err := f.server.Client(t).Set(t.Context(), "weir:1:{fleet/vendor}", "garbage", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		call(store.EventStateLost, store.EventStateForeign)
	})
}

// A call is reported with its operation, its start and its duration.
func TestWatchReceivesEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 2 * time.Millisecond
		f := newBubbleFleet(t, 1, trip, throttle.TokenBucket(100, time.Second, 10))
		f.meet()
		var log watchLog
		log.watch(f.limiters[0].(store.Limiter))
		began := time.Now()
		if err := f.queues[0].Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := store.Call{Operation: store.OperationReserve, Began: began, Took: trip}
		if got := log.calls; len(got) != 1 || !got[0].Began.Equal(began) || got[0].Took != trip || got[0].Operation != want.Operation || got[0].Cause != "" {
			t.Errorf("reported %+v, want %+v", got, want)
		}
		f.limiters[0].(store.Limiter).Watch(store.Watch{})
		time.Sleep(time.Minute)
		if err := f.queues[0].Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(log.calls) != 1 {
			t.Errorf("%d calls were reported after the watch ended", len(log.calls)-1)
		}
	})
}
