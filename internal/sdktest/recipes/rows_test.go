package recipes

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/go-resty/resty/v2"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/stripe/stripe-go/v84"
	"google.golang.org/genai"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/vendors"
)

// A row is one SDK in the table.
type row struct {
	page      string // docs/sdk/NAME.md
	what      string // the call
	transport func() *weir.Transport
	handler   http.Handler // answer to a served call; nil: an empty object

	// client returns a function that makes one call through the SDK as its page sets it up.
	client func(http.RoundTripper) func(context.Context) error
	// retrying is client with the SDK's own retries; nil: it has none.
	retrying func(http.RoundTripper) func(context.Context) error
}

var rows = []row{
	{"go-github", "Repositories.Get", vendors.GitHub().Transport, nil, githubGet, nil},
	{"stripe-go", "V1Customers.Create", vendors.Stripe().Transport, nil, stripeCreate(0), stripeCreate(2)},
	{"openai-go", "Chat.Completions.New", vendors.OpenAI().Transport, nil, openaiChat(0), openaiChat(2)},
	{"anthropic-sdk-go", "Messages.New", vendors.Anthropic().Transport, nil, anthropicMessage(0), anthropicMessage(2)},
	{"go-genai", "Models.GenerateContent", vendors.Gemini().Transport, nil, genaiGenerate(nil), genaiGenerate(&genai.HTTPRetryOptions{})},
	{"aws-sdk-go-v2", "sesv2 SendEmail", vendors.AmazonSES().Transport, nil, sesSend(recommended), sesSend(retrying)},
	{"aws-sdk-go-v2", "s3 PutObject", plain, nil, s3Put(recommended), s3Put(retrying)},
	{"aws-sdk-go-v2", "dynamodb GetItem", plain, nil, dynamodbGet(recommended), dynamodbGet(retrying)},
	{"slack-go", "PostMessageContext", vendors.Slack().Transport, http.HandlerFunc(slackOK), slackPost(0), slackPost(3)},
	{"twilio-go", "CreateMessage", vendors.Twilio().Transport, nil, twilioMessage, nil},
	{"sendgrid-go", "SendWithContext", vendors.SendGrid().Transport, nil, sendgridSend, sendgridRetry},
	{"resty", "R().Get", plain, nil, restyGet(0), restyGet(3)},
	{"go-retryablehttp", "Get", plain, nil, retryableGet(0), retryableGet(4)},
	{"connect-go", "CallUnary", plain, echoed(), echoSay, nil},
	{"webhooks", "POST", webhooks, nil, webhookDeliver, nil},
	{"controller-runtime", "Reconcile", plain, nil, reconcileOnce, nil},
	{"terraform", "ReadDataSource", plain, nil, terraformRead, nil},
}

func githubGet(rt http.RoundTripper) func(context.Context) error {
	c := newGitHub("token", rt)
	return func(ctx context.Context) error {
		_, _, err := c.Repositories.Get(ctx, "weirgo", "weir")
		return err
	}
}

func stripeCreate(retries int64) func(http.RoundTripper) func(context.Context) error {
	return func(rt http.RoundTripper) func(context.Context) error {
		c := newStripe("sk_test_1", rt)
		if retries > 0 {
			c = stripe.NewClient("sk_test_1", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
				HTTPClient: &http.Client{Transport: rt}, MaxNetworkRetries: &retries, LeveledLogger: &stripe.LeveledLogger{},
			})))
		}
		return func(ctx context.Context) error {
			_, err := c.V1Customers.Create(ctx, &stripe.CustomerCreateParams{Name: stripe.String("a")})
			return err
		}
	}
}

func openaiChat(retries int) func(http.RoundTripper) func(context.Context) error {
	return func(rt http.RoundTripper) func(context.Context) error {
		c := newOpenAI("key", rt)
		return func(ctx context.Context) error {
			_, err := c.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
				Model:    "any-model",
				Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
			}, openaioption.WithMaxRetries(retries))
			return err
		}
	}
}

func anthropicMessage(retries int) func(http.RoundTripper) func(context.Context) error {
	return func(rt http.RoundTripper) func(context.Context) error {
		c := newAnthropic("key", rt)
		return func(ctx context.Context) error {
			_, err := c.Messages.New(ctx, anthropic.MessageNewParams{
				MaxTokens: 10,
				Model:     "any-model",
				Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
			}, anthropicoption.WithMaxRetries(retries))
			return err
		}
	}
}

func restyGet(retries int) func(http.RoundTripper) func(context.Context) error {
	return func(rt http.RoundTripper) func(context.Context) error {
		c := newResty(rt).SetRetryCount(retries)
		c.AddRetryCondition(func(r *resty.Response, err error) bool {
			return err != nil || r.StatusCode() >= http.StatusTooManyRequests
		})
		return func(ctx context.Context) error {
			resp, err := c.R().SetContext(ctx).Get("https://api.example.com/")
			return answer(resp.StatusCode(), err)
		}
	}
}

func retryableGet(retries int) func(http.RoundTripper) func(context.Context) error {
	return func(rt http.RoundTripper) func(context.Context) error {
		c := newRetryable(rt)
		c.Logger, c.RetryMax = nil, retries
		return func(ctx context.Context) error {
			req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, "https://api.example.com/", nil)
			if err != nil {
				return err
			}
			resp, err := c.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			return answer(resp.StatusCode, nil)
		}
	}
}

// echoed is the server of the connect client.
func echoed() http.Handler {
	return connect.NewUnaryHandler("/echo.v1.Echo/Say", func(_ context.Context, req *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		return connect.NewResponse(req.Msg), nil
	})
}

func echoSay(rt http.RoundTripper) func(context.Context) error {
	c := newEcho("https://echo.example.com", rt)
	return func(ctx context.Context) error {
		_, err := c.CallUnary(ctx, connect.NewRequest(wrapperspb.String("hello")))
		return err
	}
}
