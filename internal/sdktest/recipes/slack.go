package recipes

import (
	"net/http"

	"github.com/slack-go/slack"
)

// newSlack returns a client whose calls wait.
func newSlack(token string, transport http.RoundTripper) *slack.Client {
	return slack.New(token,
		slack.OptionHTTPClient(&http.Client{Transport: transport})) // +
}
