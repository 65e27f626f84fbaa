package recipes

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
)

// patience is how long a worker waits in line for a call.
const patience = time.Second

// callOrRequeue makes the call of a Reconcile, unless it would wait for longer than patience.
// It returns in how long the object should be reconciled again; zero: the call was made. The
// client's Transport is the one that is asked.
func callOrRequeue(transport *weir.Transport, client *http.Client, req *http.Request) (after time.Duration, err error) {
	ctx := weir.WithRetry(req.Context(), backoff.None)              // +
	req = req.WithContext(weir.WithMaxWait(ctx, patience))          // +
	if after, err = room(transport, req); after > 0 || err != nil { // +
		return after, err // +
	}
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
	}
	switch {
	case errors.Is(err, weir.ErrDeadline), err == nil && resp.StatusCode == http.StatusTooManyRequests: // +
		after, err = room(transport, req) // +
		return max(after, patience), err  // +
	case err != nil:
		return 0, err
	case resp.StatusCode >= http.StatusBadRequest:
		return 0, fmt.Errorf("vendor: %s", resp.Status)
	}
	return 0, nil
}

// room returns for how long a call would wait; zero for no longer than patience. The
// error says that no wait helps.
func room(transport *weir.Transport, req *http.Request) (time.Duration, error) {
	f, err := transport.Forecast(req)
	switch {
	case errors.Is(err, weir.ErrExceedsBurst), errors.Is(err, weir.ErrClosed):
		return 0, err
	case err == nil && f.Expected <= patience:
		return 0, nil
	}
	return max(f.Expected, patience), nil
}
