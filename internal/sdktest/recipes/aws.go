package recipes

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// waiting returns a configuration for the clients of one service, whose calls wait.
func waiting(cfg aws.Config, transport http.RoundTripper) aws.Config {
	cfg = cfg.Copy()
	cfg.HTTPClient = &http.Client{Transport: transport} // +
	cfg.RetryMaxAttempts = 1                            // +
	return cfg
}
