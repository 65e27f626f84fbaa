package recipes

import (
	"net/http"

	"github.com/stripe/stripe-go/v84"
)

// newStripe returns a client whose calls wait.
func newStripe(key string, transport http.RoundTripper) *stripe.Client {
	backends := stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		HTTPClient:        &http.Client{Transport: transport}, // +
		MaxNetworkRetries: stripe.Int64(0),                    // +
	})
	return stripe.NewClient(key, stripe.WithBackends(backends)) // +
}
