package recipes

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sendgrid/rest"
	"github.com/sendgrid/sendgrid-go"
	"github.com/sendgrid/sendgrid-go/helpers/mail"
)

// useTransport makes all calls of package sendgrid wait. Call it once, before the first.
func useTransport(transport http.RoundTripper) {
	sendgrid.DefaultClient = &rest.Client{HTTPClient: &http.Client{Transport: transport}} // +
}

// send sends a mail by a client of its own, because a client holds the body of its mail.
func send(ctx context.Context, key string, m *mail.SGMailV3) error {
	resp, err := sendgrid.NewSendClient(key).SendWithContext(ctx, m)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("sendgrid: status %d: %s", resp.StatusCode, resp.Body)
	}
	return err
}
