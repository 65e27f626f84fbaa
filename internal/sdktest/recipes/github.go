package recipes

import (
	"net/http"

	"github.com/google/go-github/v74/github"
)

// newGitHub returns a client whose calls wait.
func newGitHub(token string, transport http.RoundTripper) *github.Client {
	client := github.NewClient(&http.Client{Transport: transport}).WithAuthToken(token) // +
	client.DisableRateLimitCheck = true                                                 // +
	return client
}
