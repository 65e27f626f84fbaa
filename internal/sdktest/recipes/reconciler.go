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

// callOrRequeue makes the call of a Reconcile, or returns in how long the object should be
// reconciled again. The transport is the client's.
func callOrRequeue(transport *weir.Transport, client *http.Client, req *http.Request) (time.Duration, error) {
	req = req.WithContext(weir.WithMaxWait(weir.WithRetry(req.Context(), backoff.None), patience)) // +
	f, err := transport.Forecast(req)                                                              // +
	switch {
	case errors.Is(err, weir.ErrExceedsBurst), errors.Is(err, weir.ErrClosed): // +
		return 0, err // no wait helps
	case err != nil || f.Expected > patience: // +
		return max(f.Expected, patience), nil // +
	}
	resp, err := client.Do(req)
	if errors.Is(err, weir.ErrDeadline) { // +
		return patience, nil // +
	} else if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests { // +
		return patience, nil // the forecast has the vendor's time then
	} else if resp.StatusCode >= http.StatusBadRequest {
		return 0, fmt.Errorf("vendor: %s", resp.Status)
	}
	return 0, nil
}
