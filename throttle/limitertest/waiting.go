package limitertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Waiting tests the waits of callers in a queue over the limiters of a store.
type Waiting struct {
	// Store returns a store for one rule. It runs in the rule's bubble, and the store is closed if
	// it can be. A remote one must answer at the instant of the call.
	Store func(t *testing.T) throttle.Store

	// Tick is the unit of the store's instants. Zero means 1 ns.
	Tick time.Duration

	// Shared is set if other processes may claim other limits: then looser ones are not in force at
	// once, so the rules of Tune are left out.
	Shared bool
}

// Run tests the rules that need waiting callers: a queue over a limiter of the store, in a bubble,
// at exact instants.
func (s Waiting) Run(t *testing.T) {
	rules := waitingRules
	if !s.Shared {
		rules = slices.Concat(rules, tuneRules)
	}
	for i, r := range rules {
		kept := t.Run(r.text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &waiting{T: t, rule: r.text, tick: max(s.Tick, 1), start: time.Now()}
				store := s.Store(t)
				if c, ok := store.(io.Closer); ok {
					defer c.Close()
				}
				limiter, err := store.Limiter("waiting", r.limits...)
				if err != nil {
					t.Fatalf("Limiter(%v) = %v", r.limits, err)
				}
				w.limiter, w.queue = limiter, shaping.NewQueue(limiter)
				r.test(w)
				w.queue.Close()
				w.all.Wait()
			})
		})
		if i == 0 && !kept {
			return // a limiter that sleeps would hang the others, with the queue's lock held
		}
	}
}

type waitingRule struct {
	text   string
	limits []throttle.Limit
	test   func(w *waiting)
}

// A waiting is one rule's queue, and its callers' results.
type waiting struct {
	*testing.T
	rule    string
	tick    time.Duration
	limiter throttle.Limiter
	queue   *shaping.Queue
	start   time.Time
	all     sync.WaitGroup

	mu  sync.Mutex
	out []exit
}

type exit struct {
	at   time.Duration
	text string
}

// come starts a caller, who waits in line, or has returned, when come returns.
func (w *waiting) come(name string, turn *shaping.Turn) { w.comeWith(w.Context(), name, turn) }

func (w *waiting) comeWith(ctx context.Context, name string, turn *shaping.Turn) {
	w.all.Go(func() {
		err := w.queue.WaitTurn(ctx, turn)
		at := time.Since(w.start)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.out = append(w.out, exit{at, fmt.Sprint(name, " ", at, outcome(err))})
	})
	synctest.Wait()
}

// pass lets time pass.
func (w *waiting) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func outcome(err error) string {
	for _, known := range []struct {
		err  error
		word string
	}{
		{nil, ""},
		{shaping.ErrDeadline, " too late"},
		{shaping.ErrQueueFull, " full"},
		{shaping.ErrClosed, " closed"},
		{throttle.ErrExceedsBurst, " too much"},
		{context.Canceled, " cancelled"},
	} {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	return " " + err.Error()
}

// want waits until all callers have returned, and fails in the words of the rule. Callers of one
// instant are sorted by name.
func (w *waiting) want(want ...string) {
	w.Helper()
	w.all.Wait()
	slices.SortFunc(w.out, func(a, b exit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.text, b.text))
	})
	got := make([]string, len(w.out))
	for i, e := range w.out {
		got[i] = e.text
	}
	if !slices.Equal(got, want) {
		w.Errorf("%s: callers came out\n%q, want\n%q", w.rule, got, want)
	}
}

// tickAt returns the first tick of the store not before an instant.
func (w *waiting) tickAt(at time.Duration) time.Duration {
	return (at + w.tick - 1) / w.tick * w.tick
}

func cost(n int) *shaping.Turn { return &shaping.Turn{N: n} }

func atMostWaiting(d time.Duration) *shaping.Turn { return &shaping.Turn{N: 1, MaxWait: d} }
