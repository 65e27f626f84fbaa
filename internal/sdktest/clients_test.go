package sdktest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	cenkalti "github.com/cenkalti/backoff/v5"
	"github.com/go-resty/resty/v2"
	"github.com/google/go-github/v74/github"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/sethvargo/go-retry"
	"github.com/stripe/stripe-go/v84"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"
	restyv3 "resty.dev/v3"
)

// A program makes one logical call through a client, and returns the status in its user's error;
// zero if the error has none.
type program struct {
	name string
	call func(t *testing.T, url string, client *http.Client) (status int, err error)
}

var programs = []program{
	{"http.Client", get},
	{"openai-go, POST", openaiPost},
	{"openai-go, GET", openaiGet},
	{"anthropic-sdk-go", anthropicPost},
	{"aws-sdk-go-v2", awsList},
	{"stripe-go, POST", stripePost},
	{"stripe-go, GET", stripeGet},
	{"google-api-go-client", googleInsert},
	{"go-github", githubGet},
	{"go-retryablehttp, GET", retryable(http.MethodGet)},
	{"go-retryablehttp, PUT", retryable(http.MethodPut)},
	{"go-retryablehttp as a RoundTripper", retryableStandard},
	{"sethvargo/go-retry over one request", sethvargo},
	{"cenkalti/backoff over one request", cenkaltiLoop},
	{"resty v2, GET", resty2(http.MethodGet)},
	{"resty v2, PUT", resty2(http.MethodPut)},
	{"resty v3, GET", resty3(http.MethodGet)},
	{"resty v3, PUT", resty3(http.MethodPut)},
	{"cenkalti/backoff over new requests", cenkaltiNew},
}

func get(t *testing.T, url string, client *http.Client) (int, error) {
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	return once(client, req)
}

// once sends the request and reads the answer as loops do.
func once(client *http.Client, req *http.Request) (int, error) {
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode >= 400 {
		return resp.StatusCode, errors.New(resp.Status)
	}
	return resp.StatusCode, nil
}

func openaiPost(t *testing.T, url string, client *http.Client) (int, error) {
	c := openai.NewClient(openaioption.WithBaseURL(url), openaioption.WithAPIKey("key"), openaioption.WithHTTPClient(client))
	_, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model:    "any-model",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
	})
	return openaiStatus(err), err
}

func openaiGet(t *testing.T, url string, client *http.Client) (int, error) {
	c := openai.NewClient(openaioption.WithBaseURL(url), openaioption.WithAPIKey("key"), openaioption.WithHTTPClient(client))
	_, err := c.Models.Get(t.Context(), "gpt")
	return openaiStatus(err), err
}

func openaiStatus(err error) int {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return e.StatusCode
	}
	return 0
}

func anthropicPost(t *testing.T, url string, client *http.Client) (int, error) {
	c := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("key"), anthropicoption.WithHTTPClient(client))
	_, err := c.Messages.New(t.Context(), anthropic.MessageNewParams{
		MaxTokens: 10,
		Model:     "claude",
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
	})
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		return e.StatusCode, err
	}
	return 0, err
}

func awsList(t *testing.T, url string, client *http.Client) (int, error) {
	c := sqs.New(sqs.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(url),
		Credentials:  credentials.NewStaticCredentialsProvider("id", "secret", ""),
		HTTPClient:   client,
	})
	_, err := c.ListQueues(t.Context(), &sqs.ListQueuesInput{})
	if e, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err); ok {
		return e.HTTPStatusCode(), err
	}
	return 0, err
}

func stripeClient(url string, client *http.Client) *stripe.Client {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL:             stripe.String(url),
		HTTPClient:      client,
		LeveledLogger:   &stripe.LeveledLogger{Level: stripe.LevelNull},
		EnableTelemetry: stripe.Bool(false),
	})
	return stripe.NewClient("sk_test_1", stripe.WithBackends(&stripe.Backends{API: backend}))
}

func stripePost(t *testing.T, url string, client *http.Client) (int, error) {
	_, err := stripeClient(url, client).V1Customers.Create(t.Context(), &stripe.CustomerCreateParams{Name: stripe.String("a")})
	return stripeStatus(err), err
}

func stripeGet(t *testing.T, url string, client *http.Client) (int, error) {
	_, err := stripeClient(url, client).V1Customers.Retrieve(t.Context(), "cus_1", nil)
	return stripeStatus(err), err
}

func stripeStatus(err error) int {
	if e, ok := errors.AsType[*stripe.Error](err); ok {
		return e.HTTPStatusCode
	}
	return 0
}

// googleInsert continues until its context ends.
func googleInsert(t *testing.T, url string, client *http.Client) (int, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := storage.NewService(ctx, option.WithHTTPClient(client), option.WithEndpoint(url))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Objects.Insert("bucket", &storage.Object{Name: "a"}).Media(strings.NewReader("body")).
		WithRetry(nil, func(err error) bool { return err != nil }).Context(ctx).Do()
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		return e.Code, err
	}
	return 0, err
}

func githubGet(t *testing.T, url string, client *http.Client) (int, error) {
	c, err := github.NewClient(client).WithEnterpriseURLs(url, url)
	if err != nil {
		t.Fatal(err)
	}
	_, resp, err := c.Repositories.Get(t.Context(), "o", "r")
	if resp != nil {
		return resp.StatusCode, err
	}
	return 0, err
}

func newRetryable(client *http.Client) *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.HTTPClient, c.Logger, c.RetryMax = client, nil, 3
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return c
}

func retryable(method string) func(*testing.T, string, *http.Client) (int, error) {
	return func(t *testing.T, url string, client *http.Client) (int, error) {
		var body any
		if method != http.MethodGet {
			body = []byte("body")
		}
		req, err := retryablehttp.NewRequestWithContext(t.Context(), method, url, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := newRetryable(client).Do(req)
		if err != nil {
			return 0, err
		}
		resp.Body.Close()
		return resp.StatusCode, errors.New(resp.Status)
	}
}

func retryableStandard(t *testing.T, url string, client *http.Client) (int, error) {
	return get(t, url, newRetryable(client).StandardClient())
}

func sethvargo(t *testing.T, url string, client *http.Client) (status int, err error) {
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	err = retry.Do(t.Context(), retry.WithMaxRetries(3, retry.NewExponential(50*time.Millisecond)), func(context.Context) (err error) {
		status, err = once(client, req)
		return retry.RetryableError(err)
	})
	return status, err
}

func cenkaltiLoop(t *testing.T, url string, client *http.Client) (status int, err error) {
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	_, err = cenkalti.Retry(t.Context(), func() (_ int, err error) {
		status, err = once(client, req)
		return status, err
	}, cenkalti.WithMaxTries(4))
	return status, err
}

func cenkaltiNew(t *testing.T, url string, client *http.Client) (status int, err error) {
	_, err = cenkalti.Retry(t.Context(), func() (_ int, err error) {
		status, err = get(t, url, client)
		return status, err
	}, cenkalti.WithMaxTries(4))
	return status, err
}

func resty2(method string) func(*testing.T, string, *http.Client) (int, error) {
	return func(_ *testing.T, url string, client *http.Client) (int, error) {
		req := resty.NewWithClient(client).SetRetryCount(3).SetLogger(quiet{}).
			AddRetryCondition(func(r *resty.Response, err error) bool { return err != nil || r.StatusCode() >= 429 }).R()
		if method != http.MethodGet {
			req.SetBody("body")
		}
		resp, err := req.Execute(method, url)
		if err == nil {
			err = errors.New(resp.Status())
		}
		return resp.StatusCode(), err
	}
}

func resty3(method string) func(*testing.T, string, *http.Client) (int, error) {
	return func(_ *testing.T, url string, client *http.Client) (int, error) {
		c := restyv3.NewWithClient(client).SetRetryCount(3).SetLogger(quiet{}).
			AddRetryConditions(func(r *restyv3.Response, err error) bool { return err != nil || r.StatusCode() >= 429 })
		defer c.Close()
		req := c.R()
		if method != http.MethodGet {
			req.SetBody("body")
		}
		resp, err := req.Execute(method, url)
		if err == nil {
			resp.Body.Close()
			err = errors.New(resp.Status())
		}
		return resp.StatusCode(), err
	}
}

type quiet struct{}

func (quiet) Errorf(string, ...any) {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Debugf(string, ...any) {}
