package gate

import (
	"io"
	"iter"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// Notify implements [throttle.Remote].
func (g *Gate) Notify(wake func()) {
	g.wake = wake
	if n, ok := g.Limiter.(throttle.Remote); ok {
		n.Notify(func() {
			g.Update(throttle.InstantOf(g.started).Add(time.Since(g.started)))
			wake()
		})
	}
}

// Fetch implements [throttle.Remote].
func (g *Gate) Fetch(now throttle.Instant, n int, line iter.Seq[throttle.Request]) {
	room := g.await(now, n, line)
	r, ok := g.Limiter.(throttle.Remote)
	if !ok || room == 0 && n > 0 {
		return
	}
	if room < n {
		// At least two: others are in line, and permits in hand may be theirs.
		n, line = max(room, 2), first(line, room)
	}
	r.Fetch(now, n, g.bound.inTurn(now, line))
}

// await returns for how many of n calls in line permits are fetched: for those that may depart.
func (g *Gate) await(now throttle.Instant, n int, line iter.Seq[throttle.Request]) int {
	g.bound.await(n, line)
	g.flights.Lock()
	defer g.flights.Unlock()
	g.course.Await(n, g.wake)
	for _, v := range g.vetoes {
		if n > 0 {
			n = v.Room(now, n)
		}
	}
	return n
}

// Lend implements [store.Lender].
func (g *Gate) Lend(now, until throttle.Instant, line iter.Seq[throttle.Request]) (call func()) {
	l, ok := g.Limiter.(store.Lender)
	if !ok {
		g.Fetch(now, 1, line)
		return nil
	}
	if g.await(now, 1, line) == 0 {
		return nil
	}
	return l.Lend(now, until, g.bound.inTurn(now, line))
}

// Holder implements [store.Lender].
func (g *Gate) Holder(now throttle.Instant, line iter.Seq[throttle.Request]) int {
	if l, ok := g.Limiter.(store.Lender); ok {
		return l.Holder(now, line)
	}
	return -1
}

func first(line iter.Seq[throttle.Request], n int) iter.Seq[throttle.Request] {
	return func(yield func(throttle.Request) bool) {
		left := n
		for r := range line {
			if left--; left < 0 || !yield(r) {
				return
			}
		}
	}
}

// Close implements [throttle.Remote].
func (g *Gate) Close() error {
	for _, places := range [...]store.Flights{g.bound.Fleet, g.bound.Reserve} {
		if places != nil {
			_ = places.Close() // it returns no error
		}
	}
	g.course.Close()
	if c, ok := g.Limiter.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
