package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// tries is how often call sends a request if it is refused.
const tries = 3

// call is the caller's own code, the same with both clients and like that of most programs: after a
// 429 it sleeps for Retry-After, and it gives up after three tries. With Weir it never needs to.
func call(ctx context.Context, client *http.Client, url string) error {
	for try := 1; ; try++ {
		status, retryAfter, err := get(ctx, client, url)
		switch {
		case err != nil:
			return err
		case status < 400:
			return nil
		case status != http.StatusTooManyRequests || try == tries:
			return fmt.Errorf("%d %s", status, http.StatusText(status))
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) (status int, retryAfter time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // read to its end, a connection is used again
	return resp.StatusCode, parseRetryAfter(resp.Header.Get("Retry-After")), err
}

// parseRetryAfter reads seconds or a date; half a second without either.
func parseRetryAfter(s string) time.Duration {
	if seconds, err := strconv.Atoi(s); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(s); err == nil {
		return max(0, time.Until(date))
	}
	return 500 * time.Millisecond
}
