package course_test

import (
	"errors"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/gate"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A deaf replicator sends nothing.
type deaf struct{}

func (*deaf) Replicate(store.Learner) {}
func (*deaf) Flush()                  {}

// A fleet with a configured limit sends little. Before the first refusal or reported quota it sends
// nothing about void permits. If the vendor reports quotas with each answer, it sends one answer in
// eight.
func TestFleetWithAConfiguredLimitSendsLittle(t *testing.T) {
	r := rideOf(t, learn.Setting{Configured: 1000, Burst: 10})
	r.Share(new(deaf), true, nil)
	view := store.FleetState{Now: dawn, Replicas: 2, Canceled: []store.OrdinalRange{{First: 1, Count: 2}}}
	if entry := r.Propose(view); len(entry.Data) > 0 {
		t.Errorf("before anything was learned, void permits are sent in %d bytes", len(entry.Data))
	}
	sent := 0
	for i := range throttle.Instant(80) {
		now := dawn + i*10_000_000
		a, ok := r.depart(now)
		if !ok {
			t.Fatalf("call %d is held", i)
		}
		a.Quotas = []learn.Quota{{Unit: "requests", Limit: 1000, Remaining: 900, HasLimit: true, HasRemaining: true, Reset: time.Second, HasReset: true}}
		r.Landed(t.Context(), now+5_000_000, &a)
		view = store.FleetState{Now: now, Ordinal: int64(i + 1), Replicas: 2}
		if entry := r.Propose(view); len(entry.Data) > 0 {
			sent++
			r.Apply(entry.Data, view.Ordinal, now+5_000_000)
		}
	}
	if sent < 9 || sent > 12 {
		t.Errorf("of 80 answers that reported quotas %d were sent, want one in eight", sent)
	}
	view.Canceled = []store.OrdinalRange{{First: 1, Count: 2}}
	if entry := r.Propose(view); len(entry.Data) == 0 {
		t.Error("after the fleet has begun to learn, void permits are not sent")
	}
}

// A fleet paced by a reported rate far below its configured limit sends more of its few answers
// than one in eight: others may use the same quota.
func TestFleetFarBelowItsConfiguredLimitSendsMore(t *testing.T) {
	r := rideOf(t, learn.Setting{Configured: 1000, Burst: 10})
	r.Share(new(deaf), true, nil)
	calls, sent := 0, 0
	for i := range throttle.Instant(300) {
		now := dawn + i*50_000_000
		a, ok := r.depart(now)
		if !ok {
			continue
		}
		a.Quotas = []learn.Quota{{Unit: "requests", Limit: 40, Remaining: 20, HasLimit: true, HasRemaining: true, Reset: time.Second, HasReset: true}}
		if i == 0 {
			a.Served, a.Refused = false, true
			a.Quotas[0].Remaining = 0
		}
		r.Landed(t.Context(), now+5_000_000, &a)
		view := store.FleetState{Now: now, Ordinal: int64(i + 1), Last: now, Replicas: 2}
		entry := r.Propose(view)
		if len(entry.Data) > 0 {
			r.Apply(entry.Data, view.Ordinal, now+5_000_000)
		}
		r.Pacing(view)
		if i >= 200 {
			if calls++; len(entry.Data) > 0 {
				sent++
			}
		}
	}
	if calls < 50 || sent < calls/4 {
		t.Errorf("of %d answers %d were sent, want a fourth at least", calls, sent)
	}
}

// A reading is proposed for the newest departure, with the answers that the store knew when that
// one left. Quotas that do not count calls are left out.
func TestFleetProposesItsNewestReading(t *testing.T) {
	r := rideOf(t, learn.Setting{})
	r.Share(new(deaf), true, nil)
	view := store.FleetState{Now: dawn, Replicas: 2}
	r.Propose(view)
	var flying []course.Answer
	for i := range throttle.Instant(3) {
		view.Now, view.Ordinal, view.Landed = dawn+i, int64(i), int64(2*i)
		r.Pacing(view)
		a, _ := r.depart(dawn + i)
		flying = append(flying, a)
		if i == 0 { // the others need more than one in flight
			r.Landed(t.Context(), dawn+i, &a)
		}
	}
	for _, i := range []int{2, 1} {
		flying[i].Quotas = []learn.Quota{
			{Name: "day", Remaining: 900, HasRemaining: true}, {Name: "second", Remaining: float64(10 + i), HasRemaining: true},
			{Name: "tokens", Unit: "tokens", Remaining: 1, HasRemaining: true},
		}
		r.Landed(t.Context(), dawn+10, &flying[i])
	}
	entry := r.Propose(view)
	if want := (store.Reading{Ordinal: 3, Left: 12, Landed: 4}); entry.Reading != want || entry.Landed != 3 {
		t.Errorf("the fleet proposes %+v and %d that landed, want %+v and 3", entry.Reading, entry.Landed, want)
	}
	if again := r.Propose(view); again.Reading != (store.Reading{}) || again.Landed != 0 {
		t.Errorf("the fleet proposes %+v and %d that landed a second time", again.Reading, again.Landed)
	}
}

// A level that rose sets no ceiling, and the store forgets the one before. Once readings bind again,
// the fleet proposes the ceiling that its learner knows: at most 4 left, of which a call in flight
// takes one.
func TestFleetProposesAForgottenCeiling(t *testing.T) {
	r := rideOf(t, learn.Setting{})
	r.Share(new(deaf), true, nil)
	answer := func(n int64, limit, left float64) store.Pacing {
		now := dawn + throttle.Instant(n)*10_000_000
		a, ok := r.depart(now)
		if !ok {
			t.Fatalf("call %d is held", n)
		}
		a.Quotas = []learn.Quota{{Name: "a", Limit: limit, Remaining: left, HasLimit: true, HasRemaining: true}}
		r.Landed(t.Context(), now+5_000_000, &a)
		view := store.FleetState{Now: now + 5_000_000, Ordinal: n, Landed: n - 1, Replicas: 2}
		r.Apply(r.Propose(view).Data, n, view.Now)
		return r.Pacing(view)
	}
	n := int64(1)
	for ; !answer(n, 20, 10).Unbound; n++ {
		if n == 200 {
			t.Fatal("a level that rises by 100/s binds")
		}
	}
	if n++; answer(n, 30, 4).Unbound {
		t.Fatal("a new quota binds nothing")
	}
	next := r.Propose(store.FleetState{Now: dawn + throttle.Instant(n+1)*10_000_000, Ordinal: n, Landed: n, Replicas: 2}).Reading
	if ceiling := next.Landed + next.Left + 1; next.Ordinal != n || ceiling < n+3 || ceiling > n+4 {
		t.Errorf("after departure %d with 4 left the fleet proposes %+v, want the ceiling %d", n, next, n+4)
	}
}

// A call that departed gives its permit back, because its caller has left. The number of departures
// may have been sent, so the store counts the call as landed, and as one that spent nothing. Otherwise readings
// would set a ceiling that is too low.
func TestFleetTakesBackADeparture(t *testing.T) {
	limiter, err := throttle.Local{}.Limiter("")
	if err != nil {
		t.Fatal(err)
	}
	c := course.NewCourse(learn.Setting{}, nil)
	c.Share(new(deaf), true, nil)
	g, r := gate.NewGate(limiter, c, nil, time.Hour), throttle.Request{N: 1, ID: 1}
	granted, err := g.Take(dawn, r)
	if err != nil || granted.At > dawn {
		t.Fatalf("%+v, %v", granted, err)
	}
	if sent := c.Propose(store.FleetState{Now: dawn, Replicas: 2}); sent.Uncounted != 1 || sent.Landed != 0 {
		t.Errorf("%d departed and %d landed, want 1 and 0", sent.Uncounted, sent.Landed)
	}
	g.Refund(dawn, granted, r)
	if sent := c.Propose(store.FleetState{Now: dawn, Ordinal: 1, Replicas: 2}); sent.Uncounted != 0 || sent.Landed != 1 || sent.Refused != 1 {
		t.Errorf("%d departed, %d landed and %d spent nothing, want 0, 1 and 1", sent.Uncounted, sent.Landed, sent.Refused)
	}
}

// Before the first refusal a configured limit is believed, whatever answers report. In a fleet,
// too, readings set no ceiling.
func TestReadingsHoldNoFleetThatBelievesItsConfiguredLimit(t *testing.T) {
	r := rideOf(t, learn.Setting{Configured: 1000, Burst: 10})
	r.Share(new(deaf), true, nil)
	for i := range int64(40) {
		now := dawn.Add(time.Duration(i) * 10 * time.Millisecond)
		a, ok := r.depart(now)
		if !ok {
			t.Fatalf("call %d is held", i)
		}
		a.Quotas = []learn.Quota{{Limit: 100, Remaining: 1, HasLimit: true, HasRemaining: true}}
		r.Landed(t.Context(), now+5_000_000, &a)
		view := store.FleetState{Now: now + 5_000_000, Ordinal: i + 1, Landed: i, Replicas: 2}
		entry := r.Propose(view)
		if len(entry.Data) > 0 {
			r.Apply(entry.Data, view.Ordinal, view.Now)
		}
		if p := r.Pacing(view); p.Counted && !p.Unbound {
			t.Fatalf("after %d answers the pace is %+v, want one that readings do not bind", i+1, p)
		}
	}
}

// A flushed is a replicator that counts urgent calls to the store.
type flushed struct {
	deaf
	times int
}

func (f *flushed) Flush() { f.times++ }

// A failed call reports nothing, but calls of other processes may wait until the store knows that it
// has landed. It is sent at once while readings bind, and otherwise with the next call.
func TestFleetReportsAFailedCallWhileReadingsBind(t *testing.T) {
	for limit, want := range map[float64]int{20: 1, 0: 0} {
		synctest.Test(t, func(t *testing.T) {
			r, calls := rideOf(t, learn.Setting{}), new(flushed)
			r.Share(calls, true, nil)
			land := func(served bool) {
				now := throttle.InstantOf(time.Now())
				a, ok := r.depart(now)
				if !ok {
					t.Fatal("a call is held")
				}
				if a.Served = served; served {
					a.Quotas = []learn.Quota{{Limit: 20, Remaining: limit / 2, HasLimit: true, HasRemaining: true}}
				}
				r.Landed(t.Context(), now, &a)
			}
			land(true)
			view := store.FleetState{Now: throttle.InstantOf(time.Now()), Ordinal: 1, Replicas: 2}
			r.Apply(r.Propose(view).Data, 1, view.Now)
			r.Pacing(view)
			before := calls.times
			land(false)
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if got := calls.times - before; got != want {
				t.Errorf("with %v of 20 left, the store is called %d times for a call that failed, want %d", limit/2, got, want)
			}
			land(true)
		})
	}
}

// places are those of a store that gives this process all of them.
type places struct {
	store.Flights
	flying        atomic.Int64
	most, waiting int
	closed        bool
	lost          error
}

func (p *places) Notify(func())                      {}
func (p *places) Bound(most int, _ throttle.Instant) { p.most = most }
func (p *places) Room() (int, error)                 { return p.most - int(p.flying.Load()), p.lost }
func (p *places) Await(n int)                        { p.waiting = n }
func (p *places) Close() error                       { p.closed = true; return nil }

func (p *places) Board() bool {
	if n, _ := p.Room(); n < 1 {
		return false
	}
	p.flying.Add(1)
	return true
}

func (p *places) Land() bool {
	p.flying.Add(-1)
	return true
}

// Calls take places of the store once the vendor may count calls in flight. A refused one keeps its place for the time
// of two answers, and one that hangs for four, as long as it is not known what the vendor counts.
func TestFleetTakesPlacesOfItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := rideOf(t, learn.Setting{}), new(places)
		leased := 0
		r.Share(new(deaf), true, func() store.Flights {
			leased++
			return p
		})
		const took = 500 * time.Millisecond
		now, inFlight := dawn, 6
		apply := func(ordinal int64, refused bool) {
			f := learn.Fact{Departed: now.Add(-took), Landed: now, Ordinal: ordinal, Flying: inFlight, Granted: ordinal, Waited: true, Refused: refused}
			r.Apply(learn.Message{Fact: &f}.Append(nil), ordinal, now)
		}
		apply(6, true)
		now = now.Add(time.Second)
		apply(7, false)
		if p.most != 1 {
			t.Fatalf("after a refusal %d places are asked for, want one at first", p.most)
		}
		first, ok := r.depart(now)
		if _, more := r.depart(now); !ok || more || p.flying.Load() != 1 {
			t.Fatalf("a call departs: %v, and a second one: %v; %d places are taken", ok, more, p.flying.Load())
		}
		first.Served, first.Refused = false, true
		r.Landed(t.Context(), now.Add(time.Millisecond), &first)
		for _, c := range []struct {
			after time.Duration
			taken int64
		}{{2*took - time.Millisecond, 1}, {2 * time.Millisecond, 0}} {
			time.Sleep(c.after)
			if synctest.Wait(); p.flying.Load() != c.taken {
				t.Errorf("%d places are taken after a refusal, want %d", p.flying.Load(), c.taken)
			}
		}
		now = now.Add(time.Second)
		if _, ok := r.depart(now); !ok {
			t.Fatal("no call departs at a free place")
		}
		if _, ok := r.depart(now.Add(900 * time.Millisecond)); ok {
			t.Error("two calls depart at one place")
		}
		if _, ok := r.depart(now.Add(3 * time.Second)); !ok || p.flying.Load() != 1 {
			t.Errorf("a call that hangs holds the next: %v; %d places are taken", !ok, p.flying.Load())
		}
		for n := range int64(250) { // until it is known, and one more is tried
			now = now.Add(10 * time.Millisecond)
			apply(8+n, false)
		}
		course.NewLedgers(r.Course, nil, false, false).Flights.Lapse(now.Add(time.Hour))
		if p.most < 5 || p.flying.Load() != 1 {
			t.Errorf("%d places are taken, want that of the call that hangs; %d are asked for", p.flying.Load(), p.most)
		}
		flying := func(after time.Duration) (most int) { // of a call, as it is sent: the store knows of no landing
			now = now.Add(after)
			for range 30 {
				a, _ := r.depart(now)
				r.Landed(t.Context(), now.Add(time.Millisecond), &a)
			}
			for _, n := range regexp.MustCompile(`"Flying":(\d+)`).FindAllSubmatch(r.Propose(store.FleetState{Now: now, Replicas: 2}).Data, -1) {
				v, _ := strconv.Atoi(string(n[1]))
				most = max(most, v)
			}
			return most
		}
		if before, n := p.most, flying(0); n != before+1 {
			t.Errorf("%d calls are in flight by what is sent, want %d, one more than there are places", n, before+1)
		}
		before := p.most
		inFlight = before
		apply(500, true)
		if n := flying(time.Millisecond); p.most >= before || n != before+1 {
			t.Errorf("just after the bound fell from %d to %d, %d are in flight by what is sent", before, p.most, n)
		}
		if n := flying(10 * time.Second); n != p.most+1 {
			t.Errorf("long after it fell, %d are in flight by what is sent, want %d", n, p.most+1)
		}
		p.lost = errors.New("lost")
		if _, err := r.gate.Take(now, throttle.Request{N: 1, ID: 99}); !errors.Is(err, p.lost) {
			t.Errorf("without the store: %v", err)
		}
		r.gate.Fetch(now, 3, nil)
		if err := r.gate.Close(); err != nil || p.waiting != 3 || !p.closed {
			t.Errorf("%d callers are known to wait, want 3; closed: %v, %v", p.waiting, p.closed, err)
		}
		late := rideOf(t, learn.Setting{})
		late.Share(new(deaf), true, func() store.Flights {
			leased++
			return p
		})
		_ = late.gate.Close()
		r = late
		apply(6, true)
		if apply(7, false); leased != 1 {
			t.Errorf("places were made %d times, want once: a reply to a closed lane makes none", leased)
		}
	})
}

// While a fleet forgets, its plan decides on calls: those that depart are given to the store. One that departed
// in between was counted as a landing later, and as no departure.
func TestPlanDecidesWhileAFleetForgets(t *testing.T) {
	r := rideOf(t, learn.Setting{})
	r.Share(new(deaf), true, nil)
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		forget := learn.Message{Forget: true}.Append(nil)
		for n := range throttle.Instant(5_000) {
			r.Apply(forget, 0, dawn+n)
		}
	}()
	for !done.Load() {
		if !r.Steers() {
			t.Fatal("the plan does not decide")
		}
	}
}
