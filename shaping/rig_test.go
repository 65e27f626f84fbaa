package shaping_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

func newLimiter(t testing.TB, limits ...throttle.Limit) throttle.Limiter {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("test", limits...)
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

func newQueue(t testing.TB, limits ...throttle.Limit) *shaping.Queue {
	t.Helper()
	return shaping.NewQueue(newLimiter(t, limits...))
}

// A journal records how and when callers come out of a queue, in a bubble.
type journal struct {
	t     *testing.T
	q     *shaping.Queue
	start time.Time
	wg    sync.WaitGroup

	mu      sync.Mutex
	entries []entry
}

type entry struct {
	at   time.Duration
	what string
}

func newJournal(t *testing.T, q *shaping.Queue) *journal {
	return &journal{t: t, q: q, start: time.Now()}
}

// come starts a caller, which is in line, or has left again, when come returns.
func (j *journal) come(ctx context.Context, name string, turn *shaping.Turn) {
	j.wg.Go(func() { j.note(name, j.q.WaitTurn(ctx, turn)) })
	synctest.Wait()
}

func (j *journal) note(name string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := time.Since(j.start)
	what := fmt.Sprint(name, " ", at)
	if err != nil {
		what += " " + word(err)
	}
	j.entries = append(j.entries, entry{at, what})
}

func word(err error) string {
	for _, known := range []struct {
		err  error
		word string
	}{
		{shaping.ErrDeadline, "deadline"},
		{shaping.ErrQueueFull, "full"},
		{shaping.ErrClosed, "closed"},
		{throttle.ErrExceedsBurst, "burst"},
		{context.Canceled, "canceled"},
		{context.DeadlineExceeded, "late"},
	} {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	return err.Error()
}

// got waits until all have come out, and returns how: by instant, and within one by name.
func (j *journal) got() []string {
	j.wg.Wait()
	slices.SortFunc(j.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.what, b.what))
	})
	got := make([]string, len(j.entries))
	for i, e := range j.entries {
		got[i] = e.what
	}
	return got
}

func (j *journal) want(want ...string) {
	j.t.Helper()
	if got := j.got(); !slices.Equal(got, want) {
		j.t.Errorf("callers came out\n%q, want\n%q", got, want)
	}
}

func one() *shaping.Turn { return &shaping.Turn{N: 1} }

func within(d time.Duration) *shaping.Turn { return &shaping.Turn{N: 1, MaxWait: d} }
