package reserve

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/shaping"
)

// A permit that comes back keeps its ordinal. The next caller departs with it, and if none does,
// the store receives that the departure will not take place.
func TestAPermitThatComesBackKeepsItsOrdinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, newHub(t, redispipe.Start(t, time.Millisecond).Client(t)))
		pace := store.Pacing{Counted: true, Interval: time.Second, TTL: time.Minute}
		m := &member{&recorder{pace: pace}, l, shaping.NewQueue(l)}
		l.Replicate(m.recorder)
		for m.send("slow"); len(m.applied()) == 0; m.limiter.Flush() {
			time.Sleep(time.Millisecond)
		}
		turn := shaping.Turn{N: 1}
		if err := m.queue.WaitTurn(t.Context(), &turn); err != nil {
			t.Fatal(err)
		}
		first := turn.Departure().Grant.Ref.Ordinal
		m.queue.Return(&turn)
		began := time.Now()
		if got := m.call(t); got != first || first == 0 || time.Since(began) > 0 {
			t.Errorf("the next departure has the ordinal %d after %v, want %d at once", got, time.Since(began), first)
		}
		turn = shaping.Turn{N: 1}
		if err := m.queue.WaitTurn(t.Context(), &turn); err != nil {
			t.Fatal(err)
		}
		want := store.OrdinalRange{First: turn.Departure().Grant.Ref.Ordinal, Count: 1}
		m.queue.Return(&turn)
		for range 2 { // nobody takes it: the first call gives it back, the next one says so
			time.Sleep(time.Second)
			m.limiter.Flush()
		}
		time.Sleep(time.Second)
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.lapsed) != 1 || m.lapsed[0] != want {
			t.Errorf("departures that do not take place = %v, want %v", m.lapsed, want)
		}
	})
}
