package recipes

import (
	"net/http"

	"github.com/hashicorp/go-retryablehttp"
)

// newRetryable returns a client whose calls wait.
func newRetryable(transport http.RoundTripper) *retryablehttp.Client {
	client := retryablehttp.NewClient()
	client.HTTPClient.Transport = transport                     // +
	client.RetryMax = 0                                         // +
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler // +
	return client
}
