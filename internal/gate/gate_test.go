package gate

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// gateOf returns a gate in front of limits, of a lane that learns nothing.
func gateOf(t testing.TB, maxPause time.Duration, limits ...throttle.Limit) *Gate {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("test", limits...)
	if err != nil {
		t.Fatal(err)
	}
	return NewGate(limiter, nil, nil, maxPause)
}

// dawn is the start of the histories.
const dawn throttle.Instant = 1_767_225_600_000_000_000

// After it was closed a gate admits one call at a time, identified by its ID, until a good answer.
func TestGateCountsAProbeOnce(t *testing.T) {
	g := gateOf(t, time.Minute)
	g.CloseTo(dawn + 1)
	now := dawn + 10
	one, two := throttle.Request{N: 1, ID: 1}, throttle.Request{N: 1, ID: 2}
	take := func(r throttle.Request, want bool) {
		t.Helper()
		if granted, err := g.Take(now, r); err != nil || (granted.At <= now) != want {
			t.Errorf("Take of call %d = %v, %v, want it to go: %v", r.ID, granted.At-dawn, err, want)
		}
	}
	take(one, true)
	take(two, false)
	g.Landed(t.Context(), clock(now), &course.Answer{ID: 3, Served: true}) // it was in flight before
	take(two, false)
	g.Refund(now, throttle.Grant{At: now}, two) // it never departed
	take(two, false)
	g.Refund(now, throttle.Grant{At: now}, one)
	take(two, true)
	g.Landed(t.Context(), clock(now), &course.Answer{ID: 1, Served: true}) // it was taken back
	take(one, false)
	g.Landed(t.Context(), clock(now), &course.Answer{ID: 2})
	take(one, true)
	now = now.Add(flight.Lease(0))
	take(two, true) // the first may never be answered
	g.Landed(t.Context(), clock(now), &course.Answer{ID: 2, Served: true})
	for id := range uint64(10) {
		take(throttle.Request{N: 1, ID: 10 + id}, true)
	}
}

func TestGateIsNotWholeWhileItRestrains(t *testing.T) {
	g := gateOf(t, time.Minute)
	if !g.State(dawn).Whole {
		t.Error("a new gate is not whole")
	}
	g.CloseTo(dawn + 1) // its limiter got no Fact
	if g.State(dawn + 10).Whole {
		t.Error("a gate that waits for a good answer is whole")
	}
}

func TestGateIsNeverClosedForLess(t *testing.T) {
	g := gateOf(t, time.Minute, throttle.LeakyBucket(1, time.Second))
	g.CloseTo(dawn.Add(time.Hour))
	g.CloseTo(dawn.Add(time.Minute))
	if left := g.ClosedFor(dawn); left != time.Hour {
		t.Errorf("closed for %v, want the hour that was asked first", left)
	}
	if _, err := g.Take(dawn.Add(30*time.Minute), throttle.Request{N: 1}); !errors.Is(err, ErrPaused) {
		t.Errorf("Take within the hour = %v, want %v", err, ErrPaused)
	}
}

// A fake is a veto that counts who boards and leaves.
type fake struct {
	name   string
	log    *[]string
	held   throttle.Forecast // by Ask
	err    error             // of Ask
	until  throttle.Instant  // of Board
	room   int               // zero: any
	aboard int
}

func (f *fake) Ask(flight.Turn) (throttle.Forecast, error) {
	*f.log = append(*f.log, "ask "+f.name)
	return f.held, f.err
}

func (f *fake) Board(flight.Turn) throttle.Instant {
	*f.log = append(*f.log, "board "+f.name)
	if f.until <= dawn {
		f.aboard++
	}
	return f.until
}

func (f *fake) Leave(flight.Turn) {
	*f.log = append(*f.log, "leave "+f.name)
	f.aboard--
}

func (f *fake) Room(_ throttle.Instant, n int) int {
	*f.log = append(*f.log, "room "+f.name)
	if f.room == 0 {
		return n
	}
	return min(n, f.room)
}

// A fakeLimiter answers Take as set, and counts the spent permits.
type fakeLimiter struct {
	throttle.Limiter
	log   *[]string
	at    throttle.Instant
	err   error
	spent int

	meanwhile func()           // called during Take; nil: no call
	since     throttle.Instant // of the last request
}

func (l *fakeLimiter) Take(_ throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	if l.meanwhile != nil {
		l.meanwhile()
	}
	*l.log = append(*l.log, "take")
	l.since = r.Since
	if l.err == nil && l.at <= dawn {
		l.spent++
	}
	return throttle.Grant{At: l.at}, l.err
}

func (l *fakeLimiter) Refund(throttle.Instant, throttle.Grant, throttle.Request) {
	*l.log = append(*l.log, "refund")
	l.spent--
}

func (l *fakeLimiter) Forecast(throttle.Instant, throttle.Request) throttle.Forecast {
	return throttle.Forecast{At: l.at}
}

// gateOfFakes returns a gate with three vetoes, which are always asked.
func gateOfFakes(log *[]string) (*Gate, *fakeLimiter, [3]*fake) {
	limiter := &fakeLimiter{log: log, at: dawn}
	vetoes := [3]*fake{{name: "a", log: log}, {name: "b", log: log}, {name: "c", log: log}}
	g := NewGate(limiter, nil, nil, time.Minute)
	g.vetoes = []veto{vetoes[0], vetoes[1], vetoes[2]}
	g.asks.Store(true)
	return g, limiter, vetoes
}

// The vetoes are asked in their order, then the limiter, and then all board. If a later veto
// refuses to board a call, the earlier ones undo it once, the last one first.
func TestVetoesBoardTogetherOrNotAtAll(t *testing.T) {
	refused := errors.New("refused")
	call := throttle.Request{N: 1, ID: 1}
	tests := []struct {
		name   string
		set    func(*fakeLimiter, [3]*fake)
		r      throttle.Request
		at     throttle.Instant
		err    error
		log    string
		aboard bool
	}{
		{"all allow", func(*fakeLimiter, [3]*fake) {}, call, dawn, nil,
			"ask a, ask b, ask c, take, board a, board b, board c", true},
		{"the first holds", func(_ *fakeLimiter, v [3]*fake) { v[0].held.At = dawn + 5 }, call, dawn + 5, nil,
			"ask a", false},
		{"the last holds", func(_ *fakeLimiter, v [3]*fake) { v[2].held.At = throttle.Never }, call, throttle.Never, nil,
			"ask a, ask b, ask c", false},
		{"one rejects", func(_ *fakeLimiter, v [3]*fake) { v[1].err = refused }, call, 0, refused,
			"ask a, ask b", false},
		{"the limiter holds", func(l *fakeLimiter, _ [3]*fake) { l.at = dawn + 7 }, call, dawn + 7, nil,
			"ask a, ask b, ask c, take", false},
		{"the limiter rejects", func(l *fakeLimiter, _ [3]*fake) { l.at, l.err = 0, refused }, call, 0, refused,
			"ask a, ask b, ask c, take", false},
		{"the first does not board", func(_ *fakeLimiter, v [3]*fake) { v[0].until = dawn + 3 }, call, dawn + 3, nil,
			"ask a, ask b, ask c, take, board a, refund", false},
		{"the last does not board", func(_ *fakeLimiter, v [3]*fake) { v[2].until = throttle.Never }, call, throttle.Never, nil,
			"ask a, ask b, ask c, take, board a, board b, board c, leave b, leave a, refund", false},
		{"no call in flight", func(*fakeLimiter, [3]*fake) {}, throttle.Request{N: 1}, dawn, nil,
			"ask a, ask b, ask c, take", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var log []string
			g, limiter, vetoes := gateOfFakes(&log)
			g.ledgers = course.NewLedgers(nil, nil, true, false) // every call has an entry
			test.set(limiter, vetoes)
			granted, err := g.Take(dawn, test.r)
			if granted.At != test.at || !errors.Is(err, test.err) {
				t.Errorf("Take = %v, %v, want %v, %v", granted.At, err, test.at, test.err)
			}
			if got := strings.Join(log, ", "); got != test.log {
				t.Errorf("calls: %s, want %s", got, test.log)
			}
			aboard := 0
			if test.aboard {
				aboard = 1
			}
			for _, v := range vetoes {
				if v.aboard != aboard {
					t.Errorf("%d aboard of %s, want %d", v.aboard, v.name, aboard)
				}
			}
			if int(g.flights.Kept()) != aboard {
				t.Errorf("%d entries, want %d", g.flights.Kept(), aboard)
			}
			if !test.aboard {
				return
			}
			log = nil
			g.Refund(dawn, granted, test.r)
			if got := strings.Join(log, ", "); got != "leave c, leave b, leave a, refund" || limiter.spent != 0 || g.flights.Kept() != 0 {
				t.Errorf("Refund: %s, %d spent, %d entries, want all back", got, limiter.spent, g.flights.Kept())
			}
		})
	}
}

// A call is charged no earlier than each veto allowed it, nor than the limiter charged it.
func TestCallIsChargedNoEarlierThanItWasAllowed(t *testing.T) {
	var log []string
	g, limiter, vetoes := gateOfFakes(&log)
	limiter.at, vetoes[0].held.At, vetoes[2].held.At, vetoes[1].until = dawn-8, dawn-5, dawn-7, dawn-3
	granted, err := g.Take(dawn, throttle.Request{N: 1, ID: 1, Since: dawn - 9})
	if granted.At != dawn-3 || err != nil || limiter.since != dawn-5 {
		t.Errorf("charged at %v, the limiter since %v, %v, want -3ns, -5ns", granted.At.Sub(dawn), limiter.since.Sub(dawn), err)
	}
}

// A veto that holds a call until an instant, or until a call lands, has allowed it since then, and
// not since it came. Otherwise the limiter would date its permit earlier by the whole tolerance.
func TestCallIsChargedNoEarlierThanItWasLetGo(t *testing.T) {
	for _, c := range []struct{ until, asks, want throttle.Instant }{
		{until: dawn - 20, asks: dawn - 10, want: dawn - 20},      // the timer was late by 10
		{until: throttle.Never, asks: dawn - 10, want: dawn - 10}, // a call landed then
	} {
		var log []string
		g, limiter, vetoes := gateOfFakes(&log)
		call := throttle.Request{N: 1, ID: 1, Since: dawn - 1000}
		limiter.at, vetoes[1].held.At = dawn-30, c.until
		if g.Take(dawn-500, call); limiter.since != 0 {
			t.Fatal("the limiter was asked for a call that was held")
		}
		vetoes[1].held.At = 0
		if g.Take(c.asks, call); limiter.since != c.want {
			t.Errorf("held until %v: charged since %v, want %v", c.until.Sub(dawn), limiter.since.Sub(dawn), c.want.Sub(dawn))
		}
		if g.Take(dawn, call); limiter.since != c.want {
			t.Errorf("the next one is charged since %v, want %v", limiter.since.Sub(dawn), c.want.Sub(dawn))
		}
	}
}

// A call that finds, with its permits taken, that others have departed is held, and its permits go
// back.
func TestPermitsGoBackIfOthersDepartMeanwhile(t *testing.T) {
	var log []string
	limiter := &fakeLimiter{log: &log, at: dawn}
	c := course.NewCourse(learn.Setting{}, nil) // one call at first
	g := NewGate(limiter, c, nil, time.Minute)
	limiter.meanwhile = func() {
		limiter.meanwhile = nil
		c.Depart(dawn)
	}
	granted, err := g.Take(dawn, throttle.Request{N: 1, ID: 1})
	if granted.At != dawn.Add(100*time.Millisecond) || err != nil || limiter.spent != 0 || c.Look().Flying() != 1 {
		t.Errorf("Take = %v, %v, %d spent, %d in flight, want held for 100ms, 0, the other", granted.At.Sub(dawn), err, limiter.spent, c.Look().Flying())
	}
}

// Only a pause is certain; the other vetoes give the reason, the first of them.
func TestForecastHasTheReasonOfTheFirstVeto(t *testing.T) {
	rate := throttle.Forecast{At: dawn + 9, Reason: throttle.ReasonRate, Limit: "learned"}
	flying := throttle.Forecast{At: throttle.Never, Reason: throttle.ReasonConcurrency}
	paused := throttle.Forecast{At: dawn + 5, Reason: throttle.ReasonPause}
	tests := []struct {
		name    string
		held    [3]throttle.Forecast
		limiter throttle.Instant
		want    throttle.Forecast
	}{
		{"nobody holds", [3]throttle.Forecast{{}, {At: dawn - 1, Reason: "none"}}, dawn, throttle.Forecast{At: dawn}},
		{"one holds", [3]throttle.Forecast{{}, rate}, dawn, throttle.Forecast{At: dawn, Reason: rate.Reason, Limit: rate.Limit}},
		{"two hold", [3]throttle.Forecast{{}, flying, rate}, dawn, throttle.Forecast{At: dawn, Reason: flying.Reason}},
		{"a pause", [3]throttle.Forecast{paused, flying}, dawn, paused},
		{"the limiter for longer than the pause", [3]throttle.Forecast{paused, flying}, dawn + 6, throttle.Forecast{At: dawn + 6}},
		{"the limiter for less than the pause", [3]throttle.Forecast{paused, flying}, dawn + 4, paused},
	}
	for _, test := range tests {
		var log []string
		g, limiter, vetoes := gateOfFakes(&log)
		limiter.at = test.limiter
		for i := range vetoes {
			vetoes[i].held = test.held[i]
		}
		if got := g.Forecast(dawn, throttle.Request{N: 1, ID: 1}); got != test.want {
			t.Errorf("%s: Forecast = %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestRoomIsTheLeastThatTheVetoesHave(t *testing.T) {
	var log []string
	g, _, vetoes := gateOfFakes(&log)
	vetoes[0].room, vetoes[2].room = 7, 3
	if n := g.await(dawn, 10, nil); n != 3 {
		t.Errorf("await = %d of 10, want 3", n)
	}
	log, vetoes[0].room = nil, -1
	if n := g.await(dawn, 10, nil); n > 0 || len(log) != 1 {
		t.Errorf("await = %d, %v were asked, want 0, and only the first", n, log)
	}
}

// The vetoes of a gate have a fixed order: those that reject come first, and learned limits, which
// are guesses, last.
func TestVetoesStandInOneOrder(t *testing.T) {
	limiter, err := throttle.Local{}.Limiter("test")
	if err != nil {
		t.Fatal(err)
	}
	c := course.NewCourse(learn.Setting{}, nil)
	g := NewGate(limiter, c, course.NewLedgers(c, nil, true, false), time.Minute)
	g.Bind(Bound{Most: 1})
	var got []string
	for _, v := range g.vetoes {
		got = append(got, reflect.TypeOf(v).Elem().Name())
	}
	if want := []string{"pause", "bound", "Ledgers", "Course"}; !slices.Equal(got, want) {
		t.Errorf("vetoes = %v, want %v", got, want)
	}
}

// Calls depart, are taken back, land and fail concurrently while the gate closes and the course
// learns: in the end no veto counts a call.
func TestEveryCallThatBoardsLeavesOnce(t *testing.T) {
	limiter, err := throttle.Local{}.Limiter("test", throttle.TokenBucket(1_000_000, time.Second, 1000))
	if err != nil {
		t.Fatal(err)
	}
	slots := &fakeSlots{most: 6}
	c := course.NewCourse(learn.Setting{}, nil)
	g := NewGate(limiter, c, course.NewLedgers(c, nil, true, false), time.Minute)
	g.Bind(Bound{Most: 5, Fleet: slots})
	var wg sync.WaitGroup
	var departed, now atomic.Int64
	now.Store(int64(dawn))
	for w := range uint64(16) {
		wg.Go(func() {
			for i := range uint64(1000) {
				now := throttle.Instant(now.Add(100_000))
				r := throttle.Request{N: 1, ID: w<<32 + i + 1, Since: now}
				granted, err := g.Take(now, r)
				if err != nil || granted.At > now {
					continue
				}
				departed.Add(1)
				if n := slots.aboard.Load(); n > 5 {
					t.Errorf("%d in flight, want 5 at most", n)
				}
				a := course.Answer{ID: r.ID, Seen: c.Look(), Departed: now, Others: i%3 == 0}
				switch i % 7 {
				case 0:
					g.Refund(now, granted, r)
					continue
				case 1:
					c.Observe(t.Context(), now, &a)
					g.CloseTo(now.Add(time.Millisecond))
				default:
					a.Served = true
				}
				g.Landed(t.Context(), clock(now), &a)
				g.Vacate()
			}
		})
	}
	wg.Wait()
	if departed.Load() < 100 {
		t.Errorf("%d calls departed, want 100 at least", departed.Load())
	}
	if n := g.flights.Look().Flying(); n != 0 {
		t.Errorf("the course counts %d calls in flight, want 0", n)
	}
	if n := g.InFlight(); n != 0 || slots.aboard.Load() != 0 {
		t.Errorf("the bound counts %d calls, the store %d, want 0", n, slots.aboard.Load())
	}
	if n := g.flights.Kept(); n != 0 {
		t.Errorf("%d entries are kept, want 0", n)
	}
}

// FakeSlots are the slots of one process in a store.
type fakeSlots struct {
	store.Flights
	most   int64
	turn   time.Duration
	aboard atomic.Int64
}

func (s *fakeSlots) Room() (int, error) { return int(max(0, s.most-s.aboard.Load())), nil }

func (s *fakeSlots) Board() bool {
	if s.aboard.Add(1) <= s.most {
		return true
	}
	s.aboard.Add(-1)
	return false
}

func (s *fakeSlots) Land() bool { s.aboard.Add(-1); return true }

func (s *fakeSlots) Notify(func()) {}

func (s *fakeSlots) Turn() time.Duration { return s.turn }

// Held returns until when a veto holds a call, as Take does, and spends nothing. It leaves
// errors to Take.
func TestHeldAsksTheVetoesAlone(t *testing.T) {
	var log []string
	g, _, vetoes := gateOfFakes(&log)
	r, questions := throttle.Request{N: 1, ID: 1}, "ask a, ask b, ask c"
	for _, until := range []throttle.Instant{0, dawn, dawn + 5, throttle.Never} {
		vetoes[1].held.At, log = until, nil
		held := g.Held(dawn, r)
		if asked := strings.Join(log, ", "); !strings.HasPrefix(questions, asked) {
			t.Errorf("Held did %q, want questions alone", asked)
		}
		granted, err := g.Take(dawn, r)
		if err != nil || max(held, dawn) != max(granted.At, dawn) {
			t.Errorf("of a veto until %v Held = %v, and Take = %v, %v", until, held, granted.At, err)
		}
		if granted.At <= dawn {
			g.Refund(dawn, granted, r)
		}
	}
	vetoes[1].err = errors.New("rejected")
	if held := g.Held(dawn, r); held > dawn {
		t.Errorf("Held = %v of a veto that rejects, want zero", held)
	}
}
