package recipes

import (
	"context"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	sestypes "github.com/aws/aws-sdk-go-v2/service/sesv2/types"
	"google.golang.org/genai"
)

func genaiGenerate(retry *genai.HTTPRetryOptions) func(http.RoundTripper) func(context.Context) error {
	return func(rt http.RoundTripper) func(context.Context) error {
		return func(ctx context.Context) error {
			c, err := newGenAI(ctx, "key", rt)
			if err != nil {
				return err
			}
			_, err = c.Models.GenerateContent(ctx, "any-model", genai.Text("hello"), &genai.GenerateContentConfig{
				HTTPOptions: &genai.HTTPOptions{RetryOptions: retry},
			})
			return err
		}
	}
}

// awsConfig is a program's configuration without Weir.
func awsConfig() aws.Config {
	return aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")}
}

// awsOver returns the configuration over a Transport, with the page's retries of the SDK, or with
// the default ones.
func awsOver(rt http.RoundTripper, w way) aws.Config {
	cfg := waiting(awsConfig(), rt)
	if w == retrying {
		cfg.RetryMaxAttempts = 0
	}
	return cfg
}

func sesSend(w way) func(http.RoundTripper) func(context.Context) error {
	return func(rt http.RoundTripper) func(context.Context) error {
		c := sesv2.NewFromConfig(awsOver(rt, w))
		return func(ctx context.Context) error {
			text := &sestypes.Content{Data: aws.String("hello")}
			_, err := c.SendEmail(ctx, &sesv2.SendEmailInput{
				FromEmailAddress: aws.String("ann@example.com"),
				Destination:      &sestypes.Destination{ToAddresses: []string{"ben@example.com"}},
				Content:          &sestypes.EmailContent{Simple: &sestypes.Message{Subject: text, Body: &sestypes.Body{Text: text}}},
			})
			return err
		}
	}
}

func s3Put(w way) func(http.RoundTripper) func(context.Context) error {
	return func(rt http.RoundTripper) func(context.Context) error {
		c := s3.NewFromConfig(awsOver(rt, w))
		return func(ctx context.Context) error {
			_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String("a"), Body: strings.NewReader("hello")})
			return err
		}
	}
}

func dynamodbGet(w way) func(http.RoundTripper) func(context.Context) error {
	return func(rt http.RoundTripper) func(context.Context) error {
		c := dynamodb.NewFromConfig(awsOver(rt, w))
		return func(ctx context.Context) error {
			_, err := c.GetItem(ctx, &dynamodb.GetItemInput{
				TableName: aws.String("t"),
				Key:       map[string]dynamodbtypes.AttributeValue{"id": &dynamodbtypes.AttributeValueMemberS{Value: "a"}},
			})
			return err
		}
	}
}
