package recipes

import (
	"context"
	"net/http"

	"google.golang.org/genai"
)

// newGenAI returns a client whose calls wait.
func newGenAI(ctx context.Context, key string, transport http.RoundTripper) (*genai.Client, error) {
	return genai.NewClient(ctx, &genai.ClientConfig{
		APIKey:     key,
		Backend:    genai.BackendGeminiAPI,
		HTTPClient: &http.Client{Transport: transport}, // +
	})
}
