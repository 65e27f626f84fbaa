package recipes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
)

// webhooks returns the Transport of all deliveries. Each customer's host has a lane, so one
// that is slow or down delays no other.
func webhooks() *weir.Transport {
	return &weir.Transport{
		InFlight: weir.InFlight{Max: 4},                             // +
		Line:     weir.Line{MaxWait: time.Minute, MaxWaiting: 1000}, // +
		Retry:    &backoff.Policy{AttemptTimeout: 10 * time.Second}, // +
		MaxLanes: 50_000,                                            // +
	}
}

// errGone says that a customer has removed the endpoint: delete it, and deliver nothing more.
var errGone = errors.New("webhook: the endpoint is gone")

// deliver posts an event. The ID is that of the event, the same in each delivery.
func deliver(ctx context.Context, client *http.Client, url, id string, event []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(event))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", id) // +
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusGone:
		return errGone
	case resp.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("webhook: event %s: %s", id, resp.Status)
	}
	return nil
}
