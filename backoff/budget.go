package backoff

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// window is how many seconds a request counts for in a [Budget], as in Finagle.
const window = 10

// A Budget bounds the retries of many requests together, so that a server in trouble is
// not sent more requests because it is in trouble. It is the RetryBudget of Finagle.
// The retries of the last ten seconds are at most a share of the requests of those
// seconds, plus a number per second:
//
//	requests in 10 s   share   per second   retries in 10 s
//	1000               0.2     10           at most 0.2 x 1000 + 10 x 10 = 300
//	0                  0.2     10           at most 100
//
// Time is counted in whole seconds: the last ten are the current one and the nine
// before it. Over a longer time the bound is the sum of two numbers. One is the share of the
// requests in that time and in the ten seconds before. The other is 10 x 10 for each
// ten seconds begun.
//
// The zero value has the defaults of [Policy]. A Budget must not be copied. It
// is safe for concurrent use.
type Budget struct {
	share, floor float64 // as the fields of Policy

	// requests[s%window] holds the number of the second s in its upper 32 bits,
	// and how many requests came in it in its lower 32.
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

// Deposit counts one request; its retries are not counted. The time now is
// measured from an instant of the caller's choice, which must stay the same for
// all calls of Deposit and Withdraw.
func (b *Budget) Deposit(now time.Duration) {
	s := second(now)
	slot := &b.requests[s%window]
	for {
		old := slot.Load()
		switch {
		case old>>32 == s:
			slot.Add(1)
			return
		case old>>32 > s: // now is a window or more behind other callers
			return
		case slot.CompareAndSwap(old, s<<32|1):
			return
		}
	}
}

// Withdraw reports whether there may be a retry at the time now, and counts it if
// so. Ask it before the delay of the retry, which is not slept in vain then.
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
	// 0 requests x +Inf would be NaN.
	if math.IsInf(share, 1) || float64(retries+1) <= share*float64(requests)+floor*window {
		b.retries[b.second%window]++
		return true
	}
	return false
}

// advance moves the window on to the second s, and forgets the retries of the
// seconds that leave it.
func (b *Budget) advance(s uint64) {
	for i := uint64(0); b.second < s && i < window; i++ {
		b.second++
		b.retries[b.second%window] = 0
	}
	b.second = max(b.second, s)
}

func second(now time.Duration) uint64 { return uint64(max(now, 0) / time.Second) }

// orDefault returns a setting whose zero means a default, and whose negative
// values mean zero.
func orDefault(setting, zero float64) float64 {
	if setting == 0 {
		return zero
	}
	return max(setting, 0)
}
