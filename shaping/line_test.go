package shaping

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/weirgo/weir/throttle"
)

// crowded returns a queue and n callers in its line, in order.
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

// BenchmarkPlace measures a caller's place in lines of 1000 and of 100,000. A newcomer comes while
// the head leaves, or while a random caller is cancelled. A turn comes back to any place while
// another leaves from any. The first ten are read.
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

// An admission's cost in a line of 10 and of 100,000, with three classes and a hundred tenants: the
// head departs, and a newcomer enters.
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
				l.enter(w, urgency{Priority(i % 3), names[i%len(names)], 1 + i%2, 0})
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

// A waiter, and the queue of an idle lane, fit sizes of the allocator.
func TestWaiterAndQueueAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(waiter{}); size > 192 {
		t.Errorf("a waiter has %d bytes, want 192 at most", size)
	}
	if size := unsafe.Sizeof(Queue{}); unsafe.Sizeof(uintptr(0)) == 8 && size > 512 {
		t.Errorf("a queue has %d bytes, want 512 at most", size)
	}
}

// urgentBefore returns how many urgent callers of cost one depart before w, of 100,000.
func urgentBefore(l *line, w *waiter) (n int) {
	for ; n < 100_000; n++ {
		urgent := stood(l, urgency{priority: PriorityHigh}, throttle.Instant(1_000_000+n), 1)
		for first := l.first(); first != urgent; first = l.first() {
			if l.depart(first); first == w {
				l.leave(urgent)
				return n
			}
		}
		l.depart(urgent)
	}
	return n
}

// Savings for callers that leave are dropped, in any order of leaving. The next caller keeps what
// it would have been owed without them.
func TestLeaversTakeTheSameInAnyOrder(t *testing.T) {
	for name, leave := range map[string]func(l *line, a, b *waiter){
		"the first first": func(l *line, a, b *waiter) { l.leave(a); l.leave(b) },
		"the first last":  func(l *line, a, b *waiter) { l.leave(b); l.leave(a) },
		"together": func(l *line, a, b *waiter) {
			a.leaves.Store(true)
			b.leaves.Store(true)
			l.removeLeavers(a.tenant)
		},
	} {
		l := &line{share: 0.05}
		low := func(i int, cost float64) *waiter {
			return stood(l, urgency{priority: PriorityLow}, throttle.Instant(i), cost)
		}
		a, b, next, last := low(1, 1000), low(2, 500), low(3, 700), low(4, 1)
		for i := range 10_000 {
			l.depart(stood(l, urgency{priority: PriorityHigh}, throttle.Instant(i+5), 1))
		}
		urgent := stood(l, urgency{priority: PriorityHigh}, 20_000, 1)
		leave(l, a, b)
		l.depart(urgent)
		// Of 10,001 departures the others are owed 500.05, and 700 need 665.
		if n := urgentBefore(l, next); n != 3299 {
			t.Errorf("%s: %d urgent callers went before the next one, want 3299", name, n)
		}
		if n := urgentBefore(l, last); n != 19 {
			t.Errorf("%s: %d urgent callers went before the last one, want 19", name, n)
		}
	}
}

// Savings for a caller are kept although cheaper callers of another tenant depart before it.
func TestSavingsOutlastCheaperOnes(t *testing.T) {
	l := &line{share: 0.05}
	low := func(i int, tenant string, cost float64) *waiter {
		return stood(l, urgency{priority: PriorityLow, tenant: tenant}, throttle.Instant(i), cost)
	}
	had, costly, leaves := low(1, "costly", 100), low(2, "costly", 100), low(3, "another", 100)
	l.depart(had) // its tenant had twice its share
	l.leave(leaves)
	n := 0
	for i := range 10 { // each departs before the costly one, because its tenant had less
		n += urgentBefore(l, low(100+i, "cheap", 1))
		for range 100 {
			l.depart(stood(l, urgency{priority: PriorityHigh}, throttle.Instant(200+n), 1))
			n++
		}
	}
	if n += urgentBefore(l, costly); n != 19*110 {
		t.Errorf("%d urgent callers went before a cost of 110, want %d", n, 19*110)
	}
}

// The share of a costly urgent departure, which covers several of the others, stays theirs although
// the first of them leaves.
func TestShareOfACostlyDepartureStaysWhenOneLeaves(t *testing.T) {
	l := &line{share: 0.05}
	low := func(i int, cost float64) *waiter {
		return stood(l, urgency{priority: PriorityLow}, throttle.Instant(i), cost)
	}
	first, last := low(0, 2), (*waiter)(nil)
	for i := range 50 {
		last = low(1+i, 1)
	}
	l.depart(stood(l, urgency{priority: PriorityHigh}, 100, 1000))
	l.leave(first)
	if n := urgentBefore(l, last); n != 0 {
		t.Errorf("%d urgent callers went before the others had their 50 of 1050, want 0", n)
	}
}
