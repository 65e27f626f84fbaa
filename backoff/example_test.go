package backoff_test

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	cenkalti "github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/weirgo/weir/backoff"
)

func ExamplePolicy_Next() {
	get, _ := http.NewRequest("GET", "https://vendor.example/orders", http.NoBody)
	post, _ := http.NewRequest("POST", "https://vendor.example/orders", http.NoBody)
	policy := &backoff.Policy{Delay: backoff.Constant(time.Second)}

	for _, req := range []*http.Request{get, post} {
		d := policy.Next(backoff.Attempt{
			Number:     1,
			Request:    req,
			Response:   &http.Response{StatusCode: http.StatusBadGateway},
			Replayable: true,
		})
		fmt.Println(req.Method, d.Retry, d.Reason, d.Delay)
	}
	// Output:
	// GET true failed 1s
	// POST false method 0s
}

func ExampleBudget() {
	budget := (&backoff.Policy{BudgetShare: 0.2, BudgetPerSecond: -1}).NewBudget()
	begin := time.Now()
	for range 10 {
		budget.Deposit(time.Since(begin))
	}
	for range 3 {
		fmt.Println(budget.Withdraw(time.Since(begin)))
	}
	// Output:
	// true
	// true
	// false
}

// A first delay of up to 100 ms, doubled for each retry, up to 2 s.
func ExampleFullJitter() {
	delay := backoff.FullJitter(100*time.Millisecond, 2*time.Second)
	for retry := range 7 {
		bound := min(100*time.Millisecond<<retry, 2*time.Second)
		d, ok := delay(retry+1, nil)
		fmt.Println(bound, 0 <= d && d <= bound, ok)
	}
	// Output:
	// 100ms true true
	// 200ms true true
	// 400ms true true
	// 800ms true true
	// 1.6s true true
	// 2s true true
	// 2s true true
}

// A delay of one's own: a second more for each retry, and no retry during
// maintenance.
func ExampleDelay() {
	delay := func(retry int, resp *http.Response) (time.Duration, bool) {
		if resp != nil && resp.Header.Get("X-Maintenance") != "" {
			return 0, false // no retry will help
		}
		return time.Duration(retry) * time.Second, true
	}
	policy := &backoff.Policy{Delay: delay}

	req, _ := http.NewRequest("GET", "https://vendor.example/orders", http.NoBody)
	for _, header := range []http.Header{nil, {"X-Maintenance": {"tonight"}}} {
		d := policy.Next(backoff.Attempt{
			Number:     2,
			Request:    req,
			Response:   &http.Response{StatusCode: http.StatusBadGateway, Header: header},
			Replayable: true,
		})
		fmt.Println(d.Retry, d.Reason, d.Delay)
	}
	// Output:
	// true failed 2s
	// false attempts 0s
}

// The delays of a BackOff of github.com/cenkalti/backoff.
func ExampleFromBackOff() {
	delay := backoff.FromBackOff(func() cenkalti.BackOff {
		return cenkalti.NewExponentialBackOff(
			cenkalti.WithInitialInterval(time.Second), cenkalti.WithRandomizationFactor(0))
	})
	for retry := 1; retry <= 3; retry++ {
		fmt.Println(delay(retry, nil))
	}
	// Output:
	// 1s true
	// 1.5s true
	// 2.25s true
}

// The delays of a Backoff of go-retryablehttp.
func ExampleFromRetryable() {
	delay := backoff.FromRetryable(retryablehttp.DefaultBackoff, time.Second, 30*time.Second)
	for retry := 1; retry <= 3; retry++ {
		fmt.Println(delay(retry, nil))
	}
	// Output:
	// 1s true
	// 2s true
	// 4s true
}

// A policy's delays for github.com/cenkalti/backoff.
func ExamplePolicy_BackOff() {
	policy := &backoff.Policy{Attempts: 3, Delay: backoff.Constant(time.Millisecond)}
	calls := 0
	err := cenkalti.Retry(func() error {
		calls++
		return errors.New("no disk")
	}, policy.BackOff())
	fmt.Println(calls, err)
	// Output: 3 no disk
}

// A policy for a client of go-retryablehttp.
func ExamplePolicy_RetryableHTTP() {
	policy := &backoff.Policy{Delay: backoff.Constant(100 * time.Millisecond)}
	client := retryablehttp.NewClient()
	client.CheckRetry, client.Backoff = policy.RetryableHTTP()

	fmt.Println(client.Backoff(0, 0, 0, nil))
	// Output: 100ms
}
