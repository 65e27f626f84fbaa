package recipes

import (
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// newAnthropic returns a client whose calls wait.
func newAnthropic(key string, transport http.RoundTripper) anthropic.Client {
	return anthropic.NewClient(option.WithAPIKey(key),
		option.WithHTTPClient(&http.Client{Transport: transport}), // +
		option.WithMaxRetries(0))                                  // +
}
