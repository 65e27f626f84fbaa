package shaping

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/weirgo/weir/throttle"
)

// crowded returns a queue and so many callers who stand in its line, in order.
func crowded(b *testing.B, n int) (*Queue, []*waiter) {
	b.Helper()
	limiter, err := throttle.Local{}.Limiter("test", throttle.LeakyBucket(1, time.Hour))
	if err != nil {
		b.Fatal(err)
	}
	q := NewQueue(limiter)
	all := make([]*waiter, n)
	for i := range all {
		all[i] = &waiter{ctx: b.Context(), deadline: throttle.Never, place: place{throttle.Instant(i), int64(i)}, cost: 1}
		q.line.enter(all[i], urgency{})
		q.await(all[i], throttle.Never, 0)
	}
	return q, all
}

// What the place of a caller costs in a line of 1000 and of 100,000: a newcomer
// while the head leaves, a turn that comes back to anywhere while another leaves
// from anywhere, a newcomer while anybody is cancelled, and a look at the first
// ten.
func BenchmarkPlace(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		for _, c := range []struct {
			name          string
			leaves, comes func(i int) int // who leaves, and the arrival of who comes
		}{
			{"newcomer", func(i int) int { return i % n }, func(i int) int { return i + n }},
			{"returning", func(int) int { return rand.IntN(n) }, func(int) int { return rand.IntN(n) }},
			{"cancelled", func(int) int { return rand.IntN(n) }, func(i int) int { return i + n }},
		} {
			b.Run(fmt.Sprint(c.name, "/", n), func(b *testing.B) {
				q, all := crowded(b, n)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					w := all[c.leaves(i)]
					q.drop(w)
					w.place = place{throttle.Instant(c.comes(i)), int64(i + n)}
					q.line.enter(w, urgency{})
					q.await(w, throttle.Never, 0)
				}
			})
		}
		b.Run(fmt.Sprint("fetched/", n), func(b *testing.B) {
			q, _ := crowded(b, n)
			b.ReportAllocs()
			for b.Loop() {
				seen := 0
				for range q.line.requests() {
					if seen++; seen == 10 {
						break
					}
				}
			}
		})
	}
}

// What an admission costs in a line of 10 and of 100,000, with three classes and a
// hundred tenants: the head departs, and a newcomer enters.
func BenchmarkAdmission(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := &line{share: DefaultLowPriorityShare}
			names := make([]string, 100)
			for i := range names {
				names[i] = fmt.Sprint("tenant ", i)
			}
			enter := func(w *waiter, i int) {
				w.place = place{throttle.Instant(i), int64(i)}
				l.enter(w, urgency{Priority(i % 3), names[i%len(names)], 1 + i%2})
			}
			for i := range n {
				enter(&waiter{deadline: throttle.Never, cost: 1}, i)
			}
			b.ReportAllocs()
			for i := n; b.Loop(); i++ {
				w := l.first()
				l.depart(w)
				enter(w, i)
			}
		})
	}
}

// A waiter, and the queue of an idle lane, fit sizes of which the allocator wastes
// nothing.
func TestWaiterAndQueueAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(waiter{}); size > 128 {
		t.Errorf("a waiter has %d bytes, want 128 at most", size)
	}
	if size := unsafe.Sizeof(Queue{}); unsafe.Sizeof(uintptr(0)) == 8 && size > 512 {
		t.Errorf("a queue has %d bytes, want 512 at most", size)
	}
}
