package weir

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
)

// A Spend states what the calls with one context cost, through any SDK that passes the
// context on. It comes from [Track]. It is safe for concurrent use.
//
// A reservation stands for every call with the context until it is replaced, because an SDK
// may send one call several times. Each of those calls is charged. Settle corrects the one
// that was sent last. Calls that go at the same time need a Spend each.
type Spend struct {
	mu       sync.Mutex
	reserved map[string]int // by unit; replaced, never changed; nil: nothing
	last     *attempt       // sent last; nil: none
}

// Track returns a context for calls, and the handle that reserves and settles their costs.
// The handle of an outer Track no longer sees those calls.
//
//	ctx, spend := weir.Track(ctx)
//	spend.Reserve("tokens", 300)
//	answer, err := client.Complete(ctx, prompt) // an SDK's
//	if err == nil {
//		err = spend.Settle("tokens", answer.Tokens)
//	}
func Track(ctx context.Context) (context.Context, *Spend) {
	s := new(Spend)
	return with(ctx, func(o *options) { o.spend = s }), s
}

// Reserve makes later calls with the context cost n permits of every limit of a unit, instead of
// the costs of [WithCostOf], [WithCost] and Transport.Cost. An empty unit means "requests". Zero
// costs nothing. If n is negative, calls fail if a limit has that unit. Nothing is spent before a call.
func (s *Spend) Reserve(unit string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reserved := maps.Clone(s.reserved)
	if reserved == nil {
		reserved = make(map[string]int)
	}
	reserved[cmp.Or(unit, "requests")] = n
	s.reserved = reserved
}

// Settle states the actual cost in a unit of the call that was sent last, as [Settle] does for a
// response. It may come before the response or after it, also after a call without a response. The
// errors are those of [Settle], and one if no call was sent yet. A call that still waits in line
// has spent nothing.
func (s *Spend) Settle(unit string, n int) error {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last == nil {
		return fmt.Errorf("weir: settling %q: no call with the context was sent", unit)
	}
	return last.settle(cmp.Or(unit, "requests"), n)
}

// sent notes an attempt that departs.
func (s *Spend) sent(a *attempt) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = a
}

// costsOf returns the costs by unit stated in the call's context; nil: none.
func (c *call) costsOf() map[string]int {
	costs := c.options.costOf
	if s := c.options.spend; s != nil {
		s.mu.Lock()
		reserved := s.reserved
		s.mu.Unlock()
		if costs = maps.Clone(costs); costs == nil {
			costs = reserved
		} else {
			maps.Copy(costs, reserved)
		}
	}
	if costs != nil && !c.t.priced.Load() {
		c.t.priced.Store(true)
	}
	return costs
}
