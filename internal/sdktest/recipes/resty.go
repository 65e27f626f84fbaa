package recipes

import (
	"net/http"

	"github.com/go-resty/resty/v2"
)

// newResty returns a client whose calls wait.
func newResty(transport http.RoundTripper) *resty.Client {
	return resty.New().SetTransport(transport) // +
}
