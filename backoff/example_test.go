package backoff_test

import (
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
	policy := &backoff.Policy{Delay: func(retry int) time.Duration { return time.Duration(retry) * time.Second }}

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

// A constant delay, by a BackOff of github.com/cenkalti/backoff.
func ExamplePolicy_newBackOff() {
	policy := &backoff.Policy{
		Attempts:   3,
		NewBackOff: func() cenkalti.BackOff { return cenkalti.NewConstantBackOff(time.Second) },
	}
	delays := policy.Delays()
	fmt.Println(delays.NextBackOff(), delays.NextBackOff(), delays.NextBackOff() == cenkalti.Stop)
	// Output: 1s 1s true
}

func ExamplePolicy_Retryable() {
	policy := &backoff.Policy{Base: 100 * time.Millisecond}
	client := retryablehttp.NewClient()
	client.CheckRetry, client.Backoff = policy.Retryable()

	fmt.Println(client.Backoff(0, 0, 0, nil) <= 100*time.Millisecond)
	// Output: true
}
