package shaping_test

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A reliving is a limiter whose past another can live again.
type reliving struct {
	throttle.Limiter
	begin   func() throttle.Limiter
	happens []func(l throttle.Limiter)
}

func relive(begin func() throttle.Limiter) *reliving {
	return &reliving{Limiter: begin(), begin: begin}
}

// again returns a limiter that has lived the same.
func (l *reliving) again() throttle.Limiter {
	other := l.begin()
	for _, happen := range l.happens {
		happen(other)
	}
	return other
}

func (l *reliving) Take(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	at, err := l.Limiter.Take(now, r)
	if err == nil && at <= now {
		l.happens = append(l.happens, func(l throttle.Limiter) { _, _ = l.Take(now, r) })
	}
	return at, err
}

func (l *reliving) Reconcile(now throttle.Instant, f throttle.Fact) {
	l.happens = append(l.happens, func(l throttle.Limiter) { l.Reconcile(now, f) })
	l.Limiter.Reconcile(now, f)
}

func (l *reliving) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	l.happens = append(l.happens, func(l throttle.Limiter) { _ = l.Tune(now, limits...) })
	return l.Limiter.Tune(now, limits...)
}

// overtakers returns the 16 who come next behind the head, in order, as far as
// they ask for less.
func (o *oracle) overtakers() []event {
	if o.late == 0 || len(o.line) < 2 {
		return nil
	}
	head := o.line[o.head()]
	all := slices.DeleteFunc(o.inOrder(), func(e event) bool { return e.caller == head.caller })
	all = all[:min(len(all), 16)]
	return slices.DeleteFunc(all, func(e event) bool { return e.n >= head.n })
}

// inOrder returns the line as it departs.
func (o *oracle) inOrder() []event {
	sim := oracle{line: slices.Clone(o.line), classes: make(map[shaping.Priority]*shares), share: o.share}
	for p, c := range o.classes {
		sim.classes[p] = &shares{even: c.even, had: maps.Clone(c.had), due: maps.Clone(c.due), owed: c.owed, saver: c.saver}
	}
	var order []event
	for len(sim.line) > 0 {
		i := sim.head()
		order = append(order, sim.line[i])
		sim.depart(i)
	}
	return order
}

// overtaker returns the first who may overtake the head now. It finds out by
// having another limiter live the same, and let it go.
func (o *oracle) overtaker(now time.Duration) (event, bool) {
	for _, w := range o.overtakers() {
		if delay, ok := o.delay(w, now); ok {
			head := o.line[o.head()]
			most := o.late - o.delayed[head.caller]
			if head.d > 0 {
				most = min(most, head.at+head.d-max(o.forecast(head), now))
			}
			if delay <= most {
				return w, true
			}
		}
	}
	return event{}, false
}

// delay returns by how much later the head could go if w went now, and whether w
// could.
func (o *oracle) delay(w event, now time.Duration) (time.Duration, bool) {
	at, other := o.base.Add(now), o.limiter.again()
	head := throttle.Request{N: o.line[o.head()].n, Since: o.base.Add(o.line[o.head()].at)}
	before := max(other.Forecast(at, head).At, at)
	if got, err := other.Take(at, throttle.Request{N: w.n, Since: o.base.Add(w.at)}); err != nil || got > at {
		return 0, false
	}
	return max(other.Forecast(at, head).At, at).Sub(before), true
}

// overtake lets w go.
func (o *oracle) overtake(w event, now time.Duration) {
	delay, _ := o.delay(w, now)
	o.delayed[o.line[o.head()].caller] += delay
	_, _ = o.limiter.Take(o.base.Add(now), throttle.Request{N: w.n, Since: o.base.Add(w.at)})
	o.got.note(w.caller, now, nil)
	o.depart(slices.IndexFunc(o.line, func(e event) bool { return e.caller == w.caller }))
}

func asking(n int) *shaping.Turn { return &shaping.Turn{N: n} }

// Those behind use what the head cannot, and it goes no later than alone by the
// bound.
func TestSmallCostsOvertakeTheHeadWithinItsBound(t *testing.T) {
	for late, want := range map[time.Duration][]string{
		0:                      {"all 0s", "ten 1s", "a 1.1s", "b 1.2s", "c 1.3s"},
		199 * time.Millisecond: {"all 0s", "a 100ms", "ten 1.1s", "b 1.2s", "c 1.3s"},
		200 * time.Millisecond: {"all 0s", "a 100ms", "b 200ms", "ten 1.2s", "c 1.3s"},
		time.Second:            {"all 0s", "a 100ms", "b 200ms", "c 300ms", "ten 1.3s"},
	} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, throttle.TokenBucket(10, time.Second, 10))
				q.MaxHeadDelay = late
				j := newJournal(t, q)
				j.come(t.Context(), "all", asking(10))
				j.come(t.Context(), "ten", asking(10))
				for _, name := range []string{"a", "b", "c"} {
					j.come(t.Context(), name, one())
				}
				j.want(want...)
			})
		})
	}
}

// What a window has left and the head cannot use delays nobody.
func TestWhatAWindowHasLeftIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.FixedWindow(10, time.Second))
		q.MaxHeadDelay = 1
		j := newJournal(t, q)
		j.come(t.Context(), "eight", asking(8))
		j.come(t.Context(), "ten", asking(10))
		time.Sleep(500 * time.Millisecond)
		for _, name := range []string{"a", "b", "c"} {
			j.come(t.Context(), name, one())
		}
		j.want("eight 0s", "a 500ms", "b 500ms", "ten 1s", "c 2s")
	})
}

// A head that waits for one limit idles no permits of another.
func TestHeadIdlesNoLimitForWhichItDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := throttle.TokenBucket(1000, time.Second, 1000)
		tokens.Unit = "tokens"
		q := newQueue(t, throttle.TokenBucket(10, time.Second, 2), tokens)
		q.MaxHeadDelay = 100 * time.Millisecond
		j := newJournal(t, q)
		ask := func(tokens int) *shaping.Turn { return &shaping.Turn{Each: []int{1, tokens}} }
		j.come(t.Context(), "all", ask(1000))
		j.come(t.Context(), "much", ask(1000))
		j.come(t.Context(), "a", ask(50))
		j.come(t.Context(), "b", ask(50))
		j.come(t.Context(), "c", ask(50))
		// Each delays it by the 50 ms of its tokens: a third would be too many.
		j.want("all 0s", "a 50ms", "b 100ms", "much 1.1s", "c 1.15s")
	})
}

// The head's own deadline is kept, whatever others may use.
func TestOvertakersKeepTheHeadsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(10, time.Second, 10))
		q.MaxHeadDelay = time.Minute
		j := newJournal(t, q)
		j.come(t.Context(), "all", asking(10))
		j.come(t.Context(), "ten", &shaping.Turn{N: 10, MaxWait: 1250 * time.Millisecond})
		for _, name := range []string{"a", "b", "c"} {
			j.come(t.Context(), name, one())
		}
		j.want("all 0s", "a 100ms", "b 200ms", "ten 1.2s", "c 1.3s")
	})
}

// Who gives up, or cannot be in time, leaves the sight of those behind to them.
func TestThoseWhoLeaveMakeRoomForOvertakers(t *testing.T) {
	for how, leaves := range map[string]time.Duration{"canceled": 0, "deadline": 300 * time.Millisecond} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, throttle.TokenBucket(10, time.Second, 10), throttle.FixedWindow(10, time.Second))
				q.MaxHeadDelay = 1
				j := newJournal(t, q)
				j.come(t.Context(), "all", &shaping.Turn{Each: []int{10}})
				j.come(t.Context(), "head", &shaping.Turn{Each: []int{10}})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for range 16 { // they would delay the head
					j.come(ctx, "two", &shaping.Turn{Each: []int{2}, MaxWait: leaves})
				}
				j.come(t.Context(), "one", &shaping.Turn{Each: []int{0, 1}}) // the 17th behind the head
				time.Sleep(300 * time.Millisecond)
				if leaves == 0 {
					cancel()
				}
				want := []string{"all 0s", "one 300ms"}
				for range 16 {
					want = append(want, "two 300ms "+how)
				}
				j.want(append(want, "head 1s")...)
			})
		})
	}
}

// A head that comes later can be overtaken by those whom the other held.
func TestAnUrgentHeadCanBeOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(10, time.Second, 10))
		q.MaxHeadDelay = 100 * time.Millisecond
		j := newJournal(t, q)
		j.come(t.Context(), "all", asking(10))
		j.come(t.Context(), "eight", asking(8))
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", one())
		time.Sleep(500 * time.Millisecond)
		j.come(shaping.WithPriority(t.Context(), shaping.PriorityHigh), "ten", asking(10))
		j.want("all 0s", "a 100ms", "b 500ms", "ten 1.2s", "eight 2s")
	})
}

// Whoever overtakes a caller of its own tenant pays with the tenant's share, and
// the head stays the head.
func TestOvertakersMoveNobodysTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(10, time.Second, 10))
		q.MaxHeadDelay = 100 * time.Millisecond
		j := newJournal(t, q)
		tenant := func(name string, n int) *shaping.Turn { return &shaping.Turn{N: n, Tenant: name} }
		j.come(t.Context(), "all", asking(10))
		j.come(t.Context(), "first of A", tenant("A", 10))
		j.come(t.Context(), "first of B", tenant("B", 10))
		j.come(t.Context(), "small of A", tenant("A", 1))
		time.Sleep(200 * time.Millisecond)
		j.come(t.Context(), "last of A", tenant("A", 10))
		j.come(t.Context(), "last of B", tenant("B", 10))
		j.want("all 0s", "small of A 100ms", "first of A 1.1s", "first of B 2.1s", "last of B 3.1s", "last of A 4.1s")
	})
}

// An asked counts what a limiter is asked.
type asked struct {
	throttle.Limiter
	times atomic.Int64
}

func (a *asked) Take(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	a.times.Add(1)
	return a.Limiter.Take(now, r)
}

func (a *asked) Overtake(now throttle.Instant, r, head throttle.Request, most time.Duration) (throttle.Instant, time.Duration, error) {
	a.times.Add(1)
	return a.Limiter.(throttle.Overtaker).Overtake(now, r, head, most)
}

// What a departure costs does not grow with the line.
func TestOvertakingLooksAtABoundedNumber(t *testing.T) {
	for _, waiting := range []int{100, 5000} {
		synctest.Test(t, func(t *testing.T) {
			limiter := &asked{Limiter: newLimiter(t, throttle.TokenBucket(100, time.Second, 100))}
			q := shaping.NewQueue(limiter)
			q.MaxHeadDelay = time.Hour
			j := newJournal(t, q)
			j.come(t.Context(), "all", asking(100))
			j.come(t.Context(), "head", asking(100))
			ctx, cancel := context.WithCancel(t.Context())
			for range waiting {
				j.wg.Go(func() { _ = q.WaitN(ctx, 2) })
			}
			synctest.Wait()
			limiter.times.Store(0)
			time.Sleep(time.Second + time.Millisecond)
			synctest.Wait()
			if left := waiting - (q.State().Waiting - 1); left != 50 {
				t.Errorf("%d of %d left in a second, want 50", left, waiting)
			}
			if n, most := limiter.times.Load(), int64(50*(2+2*16)); n > most {
				t.Errorf("with %d in line the limiter was asked %d times for 50 departures, want at most %d", waiting, n, most)
			}
			cancel()
			j.wg.Wait()
		})
	}
}

// A turn that comes back stands before its tenant's first caller, and is rejected. That
// one, whose tenant others had overtaken, is not the head any more: the caller who is
// goes at once.
func TestRejectedTurnThatLeavesAnotherHeadLetsItGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(10, time.Second, 1000))
		q.MaxHeadDelay = time.Second
		back := &shaping.Turn{N: 1000, Tenant: "a"}
		if err := q.WaitTurn(t.Context(), back); err != nil {
			t.Fatal(err)
		}
		j := newJournal(t, q)
		j.come(t.Context(), "head", &shaping.Turn{N: 1000, Tenant: "a"})
		ctx, leave := context.WithTimeout(t.Context(), 2*time.Second)
		defer leave()
		j.come(unbounded{ctx}, "shares", &shaping.Turn{N: 1000, Tenant: "c"}) // so a has had more than its share then
		j.come(t.Context(), "overtakes", &shaping.Turn{N: 10, Tenant: "a"})
		time.Sleep(5 * time.Second)
		j.come(t.Context(), "other", &shaping.Turn{N: 1, Tenant: "b"})
		time.Sleep(time.Second)
		back.MaxWait = time.Millisecond
		j.come(t.Context(), "back", back)
		time.Sleep(time.Second)
		q.Close()
		j.want("overtakes 1s", "shares 2s late", "back 6s deadline", "other 6s", "head 7s closed")
	})
}
