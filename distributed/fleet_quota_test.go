package distributed_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

const (
	quota    = 1000
	estimate = quota
	actual   = 10
)

// quotas are limits whose quota takes long to refill. No window ends during a test.
func quotas(t *testing.T) []throttle.Limit {
	t.Helper()
	if left := time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)); left < time.Minute {
		time.Sleep(left)
	}
	return []throttle.Limit{
		throttle.FixedWindow(quota, time.Hour), throttle.SlidingLog(quota, time.Hour), throttle.SlidingWindow(quota, time.Hour),
		throttle.TokenBucket(quota, 24*time.Hour, quota), throttle.GCRA(quota, 24*time.Hour, quota),
	}
}

// reserve takes an estimate, and returns a function that settles it.
func reserve(t *testing.T, q *shaping.Queue, n int) (settle func(actual int)) {
	t.Helper()
	turn := shaping.Turn{N: n}
	ctx, cancel := context.WithTimeout(t.Context(), patience) // a machine that stops loses a day's permits
	defer cancel()
	if err := q.WaitTurn(ctx, &turn); err != nil {
		t.Fatalf("WaitN(%d) = %v", n, err)
	}
	return func(actual int) {
		q.Settle(turn.Departure(), throttle.Request{N: actual})
	}
}

// soon asks for one permit repeatedly, each time with a deadline.
func soon(t *testing.T, who string, q *shaping.Queue) {
	t.Helper()
	took := await(t, who+" to be let go", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		return q.Wait(ctx) == nil
	})
	t.Logf("%s departed after %v", who, took.Round(time.Millisecond))
	if most := 5 * time.Second; took > most {
		t.Errorf("%s departed after %v, want %v at most", who, took, most)
	}
}

// refused fails the test unless a caller is rejected with ErrDeadline.
func refused(t *testing.T, who string, q *shaping.Queue) {
	t.Helper()
	err := q.WaitTurn(t.Context(), &shaping.Turn{N: 1, MaxWait: 2 * time.Second})
	if !errors.Is(err, shaping.ErrDeadline) {
		t.Errorf("%s: %v, want ErrDeadline", who, err)
	}
}

// A caller rejected for its deadline must not close the current window, as a permit of the next one
// would. A then gives back unused permits to this window, and B and a new C get them. This holds
// for local and shared stores.
func TestARefusedCallerClosesNoSharedWindow(t *testing.T) {
	for i, limit := range quotas(t) {
		if testing.Short() && i > 1 {
			continue // the algorithms differ only in the script
		}
		t.Run(limit.Algorithm.String(), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plan{members: 2, config: quietly(limit)})
			a, b := f.members[0].queue, f.members[1].queue
			testQuota(t, a, b, func() *shaping.Queue { return f.join(f.way()).queue })
		})
		t.Run(limit.Algorithm.String()+" here", func(t *testing.T) {
			t.Parallel()
			local, err := throttle.Local{}.Limiter("", limit)
			if err != nil {
				t.Fatal(err)
			}
			q := shaping.NewQueue(local)
			testQuota(t, q, q, func() *shaping.Queue { return q })
		})
	}
}

func testQuota(t *testing.T, a, b *shaping.Queue, c func() *shaping.Queue) {
	if a == b {
		reserve(t, a, 0)(0) // charges before the first settlement need not be remembered here
	}
	settle := reserve(t, a, estimate)
	refused(t, "B", b)
	refused(t, "A", a)
	wait := waits(t, "who waits at B", b)
	settle(actual)
	wait()
	soon(t, "B", b)
	soon(t, "A", a)
	soon(t, "C", c())
	const most = quota - actual - 4
	if n := take(b, quota); n > most+3 || n < most-3 { // a bucket refills a few meanwhile, and a busy machine loses some
		t.Errorf("%d were left, want %d", n, most)
	}
}

// waits starts a caller without a deadline, and returns a function that waits for its departure.
func waits(t *testing.T, who string, q *shaping.Queue) (wait func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- q.Wait(ctx) }()
	time.Sleep(100 * time.Millisecond)
	began := time.Now()
	return func() {
		t.Helper()
		timer := time.AfterFunc(patience, cancel)
		defer timer.Stop()
		err := <-gone
		t.Logf("%s departed after %v", who, time.Since(began).Round(time.Millisecond))
		if err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
}

// take takes permits one by one until one is refused.
func take(q *shaping.Queue, most int) (n int) {
	for n < most && q.WaitTurn(context.Background(), &shaping.Turn{N: 1, MaxWait: time.Second}) == nil {
		n++
	}
	return n
}

// quietly is a config without callers.
func quietly(limits ...throttle.Limit) config {
	c := patiently(limits...)
	c.Callers = -1
	return c
}

// The state is lost, or deleted by an operator, while the next permit is far ahead. No replica
// keeps waiting for the earlier instant.
func TestALostStateEndsALongWait(t *testing.T) {
	t.Parallel()
	for _, limit := range quotas(t)[:3] {
		for _, command := range [][]string{{"FLUSHALL"}, {"DEL", ""}} {
			t.Run(limit.Algorithm.String()+" "+command[0], func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, plan{members: 2, config: quietly(limit)})
				a, b := f.members[0].queue, f.members[1].queue
				reserve(t, a, quota)
				refused(t, "A", a)
				refused(t, "B", b)
				wait := waits(t, "who waits at B", b)
				if len(command) > 1 {
					command = []string{"DEL", "weir:1:{fleet/lane}", "weir:1:{fleet/lane}:log:requests-long-0"}
				}
				f.do(command...)
				wait()
				soon(t, "A", a)
				soon(t, "B", b)
			})
		}
	}
}
