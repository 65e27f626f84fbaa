package backoff

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBudgetBoundsRetriesWhenEverythingFails(t *testing.T) {
	for _, perSecond := range []int{1, 10, 100, 2000} {
		b := new(Budget)
		var retries int
		for i := range 60 * perSecond {
			now := time.Duration(i) * time.Second / time.Duration(perSecond)
			b.Deposit(now)
			for range DefaultAttempts - 1 {
				if b.Withdraw(now) {
					retries++
				}
			}
		}
		offered := 60 * perSecond
		most := DefaultBudgetShare*float64(offered) + 60*DefaultBudgetPerSecond
		if float64(retries) > most {
			t.Errorf("%d retries of %d requests, want at most %v", retries, offered, most)
		}
		if wanted := float64(3 * offered); float64(retries) < min(most, wanted)*0.9 {
			t.Errorf("%d retries of %d requests, want about %v", retries, offered, min(most, wanted))
		}
	}
}

func TestBudgetHoldsOverAnyTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			BudgetShare:     rapid.Float64Range(0.01, 2).Draw(t, "share"),
			BudgetPerSecond: rapid.SampledFrom([]float64{-1, 0.1, 2.5, 20}).Draw(t, "floor"),
		}
		b := p.NewBudget()
		var requests, retries [80]int
		now := time.Duration(0)
		for now < 60*time.Second {
			now += time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "step"))
			s := now / time.Second
			for range rapid.IntRange(0, 200).Draw(t, "requests") {
				b.Deposit(now)
				requests[s]++
			}
			for range rapid.IntRange(0, 200).Draw(t, "retries") {
				if !b.Withdraw(now) {
					break
				}
				retries[s]++
			}
		}
		for from := range requests {
			req, ret := 0, 0
			for s := max(0, from-window+1); s < from; s++ {
				req += requests[s]
			}
			for to := from; to < len(requests); to++ {
				req += requests[to]
				ret += retries[to]
				windows := float64((to-from)/window + 1)
				most := p.BudgetShare*float64(req) + windows*window*max(p.BudgetPerSecond, 0)
				if float64(ret) > most {
					t.Fatalf("%d retries in seconds %d to %d, want at most %v", ret, from, to, most)
				}
			}
		}
	})
}

// The last ten seconds are whole ones.
func TestBudgetForgetsByTheSecond(t *testing.T) {
	b := new(Budget)
	for _, tt := range []struct {
		now  time.Duration
		want int
	}{{900 * time.Millisecond, 100}, {9999 * time.Millisecond, 0}, {10 * time.Second, 100}} {
		got := 0
		for b.Withdraw(tt.now) {
			got++
		}
		if got != tt.want {
			t.Errorf("%d retries at %v, want %d", got, tt.now, tt.want)
		}
	}
}

func TestBudgetIsRefilledByRequests(t *testing.T) {
	p := Policy{BudgetShare: 0.5, BudgetPerSecond: -1}
	b := p.NewBudget()
	const now = 5 * time.Second
	if b.Withdraw(now) {
		t.Error("Withdraw before any request = true")
	}
	b.Deposit(now)
	b.Deposit(now)
	if !b.Withdraw(now) || b.Withdraw(now) {
		t.Error("two requests at a share of one half allow other than one retry")
	}
	b.Deposit(now)
	b.Deposit(now)
	if b.Withdraw(now + window*time.Second) {
		t.Error("Withdraw ten seconds after the requests = true")
	}
}

func TestBudgetSettings(t *testing.T) {
	tests := []struct {
		name         string
		share, floor float64
		want         int // retries after 1000 requests, of 10000
	}{
		{"zero is the default", 0, 0, 300},
		{"less is none", -1, -1, 0},
		{"share alone", 0.01, -1, 10},
		{"floor alone", -1, 2.5, 25},
		{"no bound", math.Inf(1), 0, 10000},
		{"no number is none", math.NaN(), 5, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Policy{BudgetShare: tt.share, BudgetPerSecond: tt.floor}
			b := p.NewBudget()
			for range 1000 {
				b.Deposit(0)
			}
			got := 0
			for range 10000 {
				if b.Withdraw(0) {
					got++
				}
			}
			if got != tt.want {
				t.Errorf("%d retries, want %d", got, tt.want)
			}
		})
	}
}

// A slow attempt may fail long after the last request.
func TestBudgetWithoutBoundNeedsNoRequests(t *testing.T) {
	b := (&Policy{BudgetShare: math.Inf(1), BudgetPerSecond: -1}).NewBudget()
	b.Deposit(0)
	if !b.Withdraw(time.Minute) {
		t.Error("Withdraw a minute after the last request = false, want true")
	}
}

func TestBudgetOfNilPolicyHasTheDefaults(t *testing.T) {
	b := (*Policy)(nil).NewBudget()
	n := 0
	for b.Withdraw(0) {
		n++
	}
	if n != window*DefaultBudgetPerSecond {
		t.Errorf("%d retries without a request, want %d", n, window*DefaultBudgetPerSecond)
	}
}

func TestBudgetOfAClockThatRunsBack(t *testing.T) {
	p := Policy{BudgetShare: 1, BudgetPerSecond: -1}
	b := p.NewBudget()
	b.Deposit(-time.Hour)
	b.Deposit(100 * time.Second)
	b.Deposit(time.Second)
	b.Deposit(0) // its slot belongs to second 100
	if !b.Withdraw(100*time.Second) || b.Withdraw(0) || b.Withdraw(time.Second) {
		t.Error("an earlier instant has made a permit")
	}
}

func TestBudgetIsNeverOvershotTogether(t *testing.T) {
	b := new(Budget)
	const workers, requests = 16, 100
	var granted atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range requests {
				b.Deposit(time.Second)
			}
			for range 1000 {
				if b.Withdraw(time.Second) {
					granted.Add(1)
				}
			}
		})
	}
	all.Wait()
	const most = workers*requests/5 + window*DefaultBudgetPerSecond
	for b.Withdraw(time.Second) {
		granted.Add(1)
	}
	if got := granted.Load(); got != most {
		t.Errorf("%d retries, want %d", got, most)
	}
}

func BenchmarkBudgetDeposit(b *testing.B) {
	budget := new(Budget)
	b.ReportAllocs()
	var now time.Duration
	for b.Loop() {
		now += time.Microsecond
		budget.Deposit(now)
	}
}

func BenchmarkBudgetDepositParallel(b *testing.B) {
	budget := new(Budget)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			budget.Deposit(time.Second)
		}
	})
}

func BenchmarkBudgetWithdraw(b *testing.B) {
	budget := new(Budget)
	b.ReportAllocs()
	var now time.Duration
	for b.Loop() {
		now += time.Microsecond
		budget.Withdraw(now)
	}
}
