package backoff

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// window is how many seconds a request counts for in a [Budget], as in Finagle.
const window = 10

// A Budget bounds the retries of many requests together, so that a server in
// trouble is not asked more for being in trouble. It is the RetryBudget of
// Finagle: retries of the last ten seconds are at most a share of the requests
// of those seconds plus a floor per second. So over any time they are at most
// that share of the requests in it and in the ten seconds before, plus the
// floor of its ten-second windows, begun ones counted whole.
//
// The zero value has the defaults of [Policy]. A Budget must not be copied. It
// is safe for concurrent use.
type Budget struct {
	share, floor float64 // as the fields of Policy

	// requests[s%window] holds the second s in its upper half and the requests
	// of that second in its lower half.
	requests [window]atomic.Uint64

	mu      sync.Mutex
	second  uint64         // the latest that Withdraw has seen
	retries [window]uint32 // of second and those before it
}

// NewBudget returns a budget with the policy's settings.
func (p *Policy) NewBudget() *Budget {
	if p == nil {
		p = &defaults
	}
	return &Budget{share: p.BudgetShare, floor: p.BudgetPerSecond}
}

// Deposit counts one request, not its retries. The time is since a base of the
// caller's that does not change, here and for Withdraw.
func (b *Budget) Deposit(now time.Duration) {
	s := second(now)
	slot := &b.requests[s%window]
	for {
		old := slot.Load()
		switch {
		case old>>32 == s:
			slot.Add(1)
			return
		case old>>32 > s: // late by a whole window
			return
		case slot.CompareAndSwap(old, s<<32|1):
			return
		}
	}
}

// Withdraw reports whether there may be a retry, and counts it if so. It is
// asked before the delay, which is then not slept in vain.
func (b *Budget) Withdraw(now time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(second(now))
	var requests, retries uint64
	for i := range window {
		if v := b.requests[i].Load(); v>>32+window > b.second {
			requests += v & (1<<32 - 1)
		}
		retries += uint64(b.retries[i])
	}
	share, floor := orDefault(b.share, DefaultBudgetShare), orDefault(b.floor, DefaultBudgetPerSecond)
	// No requests times no bound would be no number.
	if math.IsInf(share, 1) || float64(retries+1) <= share*float64(requests)+floor*window {
		b.retries[b.second%window]++
		return true
	}
	return false
}

// advance forgets the retries of the seconds that leave the window as s enters.
func (b *Budget) advance(s uint64) {
	for i := uint64(0); b.second < s && i < window; i++ {
		b.second++
		b.retries[b.second%window] = 0
	}
	b.second = max(b.second, s)
}

func second(now time.Duration) uint64 { return uint64(max(now, 0) / time.Second) }

func orDefault(setting, zero float64) float64 {
	if setting == 0 {
		return zero
	}
	return max(setting, 0)
}
