package throttle_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

const epoch throttle.Instant = 1_700_000_000_123_456_789

// due returns when the n-th back-to-back permit is due: n x Per / Permits from
// the start, rounded up to a nanosecond.
func due(l throttle.Limit, n int64) throttle.Instant {
	d := new(big.Int).Mul(big.NewInt(n), big.NewInt(int64(l.Per)))
	d.Add(d, big.NewInt(int64(l.Permits)-1))
	return epoch + throttle.Instant(d.Quo(d, big.NewInt(int64(l.Permits))).Int64())
}

// dueAfter counts up due, one permit at a time, without the cost of big numbers; every thousandth
// is checked against them.
type dueAfter struct {
	limit throttle.Limit
	n     int64
	whole int64
	rest  int64
}

func (d *dueAfter) next(t *testing.T) throttle.Instant {
	d.n++
	d.whole += int64(d.limit.Per) / int64(d.limit.Permits)
	if d.rest += int64(d.limit.Per) % int64(d.limit.Permits); d.rest >= int64(d.limit.Permits) {
		d.rest -= int64(d.limit.Permits)
		d.whole++
	}
	at := epoch + throttle.Instant(d.whole)
	if d.rest > 0 {
		at++
	}
	if d.n%1000 == 0 && at != due(d.limit, d.n) {
		t.Fatalf("the oracles disagree on %d permits of %v", d.n, d.limit)
	}
	return at
}

// peek returns the next value of next.
func (d dueAfter) peek() throttle.Instant { return due(d.limit, d.n+1) }

var paths = map[string]func(...throttle.Limit) throttle.Limiter{
	"lock-free": throttle.NewAt,
	"locked":    throttle.NewLocked,
}

// backToBack takes n permits, each at its due instant, and compares every departure with the
// oracle. For the first hundred and every sixteenth after, it also checks a nanosecond earlier. All
// arrived at the start, or each at the previous departure, or at its due instant.
func backToBack(t *testing.T, limiter throttle.Limiter, l throttle.Limit, n int, arrived bool) {
	t.Helper()
	oracle, since := dueAfter{limit: l}, epoch
	for i := range n {
		want := epoch
		if i > 0 {
			want = oracle.next(t)
		}
		if i > 0 && (i <= 100 || i%16 == 0) {
			if granted, _ := limiter.Take(want-1, throttle.Request{N: 1, Since: since}); granted.At != want {
				t.Fatalf("%v: departure %d is at %d, want %d", l, i, granted.At-epoch, want-epoch)
			}
		}
		now := want
		if granted, err := limiter.Take(now, throttle.Request{N: 1, Since: since}); granted.At != want || err != nil {
			t.Fatalf("%v: departure %d = %d, %v, want %d", l, i, granted.At-epoch, err, want-epoch)
		}
		if !arrived {
			since = now
			if i%2 == 0 {
				since = oracle.peek()
			}
		}
	}
}

func TestBackToBackDeparturesAreExact(t *testing.T) {
	limits := []throttle.Limit{
		throttle.TokenBucket(7_777, time.Second, 1),
		throttle.LeakyBucket(999_983, time.Second),
		throttle.GCRA(1_000_000, time.Second, 1),
	}
	for name, make := range paths {
		for _, l := range limits {
			for _, arrived := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%v/arrived %v", name, l, arrived), func(t *testing.T) {
					t.Parallel()
					n := 1_000_000
					if !arrived || name == "locked" && l != limits[0] || testing.Short() {
						n = 100_000
					}
					backToBack(t, make(l), l, n, arrived)
				})
			}
		}
	}
}

func TestBackToBackDeparturesOfRandomLimitsAreExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		per := time.Duration(1 + random.Int64N(int64(31*24*time.Hour)))
		permits := 1 + random.Int64N(max(min(int64(per/time.Microsecond), 1_000_000_000), 1))
		l := throttle.TokenBucket(int(min(permits, 1<<31-1)), per, 1)
		for _, make := range paths {
			backToBack(t, make(l), l, 2_000, random.IntN(2) == 0)
		}
	}
}

// Large costs of a leaky bucket sum up to a trillion permits.
func TestDeparturesAreExactToATrillionPermits(t *testing.T) {
	const trillion = 1_000_000_000_000
	random := rand.New(rand.NewPCG(3, 4))
	for _, permits := range []int{7_777, 150_000, 999_983, 1_000_000} {
		l := throttle.LeakyBucket(permits, time.Second)
		for name, make := range paths {
			limiter := make(l)
			sum, now := int64(0), epoch
			for sum < trillion {
				cost := 1 + random.Int64N(trillion/1000)
				cost = min(cost, 1<<31-1)
				if granted, err := limiter.Take(now, throttle.Request{N: int(cost), Since: epoch}); granted.At != now || err != nil {
					t.Fatalf("%s %v: after %d permits Take = %d, %v, want %d", name, l, sum, granted.At-epoch, err, now-epoch)
				}
				sum += cost
				if granted, _ := limiter.Take(now, throttle.Request{N: 1, Since: epoch}); granted.At != due(l, sum) {
					t.Fatalf("%s %v: %d permits end at %d, want %d", name, l, sum, granted.At-epoch, due(l, sum)-epoch)
				}
				now = due(l, sum)
			}
		}
	}
}

// Each timer fires late by up to a millisecond, and waiting callers take the permits due by then:
// every permit still counts at its own instant.
func TestLateTimersKeepTheSchedule(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, permits := range []int{100, 7_777, 150_000} {
		for name, make := range paths {
			l := throttle.TokenBucket(permits, time.Second, 1)
			limiter, now, previous := make(l), epoch, epoch
			for n := int64(0); n < 20_000; {
				granted, err := limiter.Take(now, throttle.Request{N: 1, Since: previous})
				if err != nil || granted.At <= now && granted.At != due(l, n) {
					t.Fatalf("%s %v: departure %d = %d, %v, want %d", name, l, n, granted.At-epoch, err, due(l, n)-epoch)
				}
				if granted.At <= now {
					n++
					previous = granted.At
				} else {
					now = granted.At.Add(time.Duration(random.Int64N(int64(time.Millisecond))))
				}
			}
		}
	}
}
