package recipes

import (
	"net/http"
	"time"

	"github.com/twilio/twilio-go/client"
	openapi "github.com/twilio/twilio-go/rest/api/v2010"
)

// newTwilio returns the messaging API for an account, whose calls wait.
func newTwilio(sid, token string, transport http.RoundTripper) *openapi.ApiService {
	c := &client.Client{
		Credentials: client.NewCredentials(sid, token),
		HTTPClient:  &http.Client{Transport: transport, Timeout: time.Minute}, // +
	}
	c.SetAccountSid(sid)
	return openapi.NewApiService(client.NewRequestHandler(c))
}
