package recipes

import (
	"context"
	"net/http"

	"github.com/sendgrid/sendgrid-go"
	"github.com/sendgrid/sendgrid-go/helpers/mail"
	"github.com/slack-go/slack"
	openapi "github.com/twilio/twilio-go/rest/api/v2010"
)

func slackPost(retries int) func(http.RoundTripper) func(context.Context) error {
	return func(rt http.RoundTripper) func(context.Context) error {
		c := newSlack("xoxb-1", rt)
		slack.OptionRetry(retries)(c)
		return func(ctx context.Context) error {
			_, _, err := c.PostMessageContext(ctx, "C1", slack.MsgOptionText("hello", false))
			return err
		}
	}
}

func slackOK(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte(`{"ok":true,"channel":"C1","ts":"1"}`))
}

// twilioMessage makes calls without a context: twilio-go takes none.
func twilioMessage(rt http.RoundTripper) func(context.Context) error {
	c := newTwilio("AC1", "token", rt)
	return func(context.Context) error {
		params := new(openapi.CreateMessageParams)
		params.SetTo("+15558881111").SetFrom("+15558882222").SetBody("hello")
		_, err := c.CreateMessage(params)
		return err
	}
}

func sendgridSend(rt http.RoundTripper) func(context.Context) error {
	useTransport(rt)
	return func(ctx context.Context) error {
		resp, err := sendgrid.NewSendClient("key").SendWithContext(ctx, aMail())
		if err != nil {
			return err
		}
		return answer(resp.StatusCode, nil)
	}
}

// sendgridRetry makes calls through the SDK's own loop.
func sendgridRetry(rt http.RoundTripper) func(context.Context) error {
	useTransport(rt)
	return func(ctx context.Context) error {
		request := sendgrid.GetRequest("key", "/v3/mail/send", "")
		request.Method, request.Body = http.MethodPost, mail.GetRequestBody(aMail())
		resp, err := sendgrid.MakeRequestRetryWithContext(ctx, request)
		if err != nil {
			return err
		}
		return answer(resp.StatusCode, nil)
	}
}

func aMail() *mail.SGMailV3 {
	address := mail.NewEmail("Ann", "ann@example.com")
	return mail.NewSingleEmail(address, "hello", address, "text", "<p>text</p>")
}
