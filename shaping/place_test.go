package shaping

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/throttle"
)

// After any joins and leaves, the first waiter precedes all others, and a look at the line finds
// all in order.
func TestLineByPlaceIsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l byPlace
		var want []*waiter
		newest := throttle.Instant(0)
		come := func(at throttle.Instant) {
			w := &waiter{place: place{at, int64(newest)}}
			newest++
			l.add(w)
			i, _ := slices.BinarySearchFunc(want, w, func(a, b *waiter) int { return a.compare(b.place) })
			want = slices.Insert(want, i, w)
		}
		leave := func(i int) {
			w := want[i]
			l.remove(w)
			if want = slices.Delete(want, i, i+1); w.index != 0 {
				t.Fatalf("index %d of a leaver, want 0", w.index)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"newcomers": func(t *rapid.T) {
				for range rapid.IntRange(1, 10).Draw(t, "newcomers") {
					come(newest)
				}
			},
			"departures": func(t *rapid.T) {
				for range rapid.IntRange(0, min(len(want), 10)).Draw(t, "departures") {
					leave(0)
				}
			},
			"return": func(t *rapid.T) { come(throttle.Instant(rapid.Int64Range(0, int64(newest)).Draw(t, "arrival"))) },
			"cancel": func(t *rapid.T) {
				if len(want) > 0 {
					leave(rapid.IntRange(0, len(want)-1).Draw(t, "who"))
				}
			},
			"cancel together": func(t *rapid.T) {
				want = slices.DeleteFunc(want, func(w *waiter) bool {
					w.leaves.Store(rapid.Bool().Draw(t, "leaves"))
					return w.leaves.Load()
				})
				l.removeLeavers(func(*waiter) {})
			},
			"all leave": func(*rapid.T) {
				for len(want) > 0 {
					leave(len(want) - 1)
				}
				if l.mixed {
					t.Fatal("the line is empty and not in order")
				}
			},
			"": func(t *rapid.T) {
				if l.Len() != len(want) {
					t.Fatalf("%d in line, want %d", l.Len(), len(want))
				}
				if len(want) == 0 {
					return
				}
				if l.first() != want[0] {
					t.Fatalf("the first came at %v, want %v", l.first().place, want[0].place)
				}
				look := candidates{line: l.list(), mixed: l.mixed, at: []int{0}}
				for _, w := range want {
					if got := look.next(); got != w {
						t.Fatalf("next came at %v, want %v", got.place, w.place)
					}
				}
				if !look.done() {
					t.Fatal("a look at the line finds more than there are")
				}
				for _, w := range want {
					if l.all[w.index-1] != w {
						t.Fatalf("index %d is another's", w.index)
					}
				}
			},
		})
	})
}
