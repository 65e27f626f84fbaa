package recipes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
)

// slowsDown answers the first requests as an overloaded S3 does.
func slowsDown(times int32) http.HandlerFunc {
	var came atomic.Int32
	return func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		if came.Add(1) <= times {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)
		}
	}
}

// put uploads an object of some bytes.
func put(ctx context.Context, cfg aws.Config, size int) error {
	_, err := s3.NewFromConfig(cfg).PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String("bucket"), Key: aws.String("a"), Body: strings.NewReader(strings.Repeat("a", size)),
	})
	return err
}

// The SDK wraps the body of an upload, so only the SDK can read a long one again.
func TestS3RetriesLongUploads(t *testing.T) {
	const long = 1 << 20
	for name, c := range map[string]struct {
		size     int
		w        way
		buffer   int64
		requests int
		fails    bool
	}{
		"short":                         {size: 1 << 10, requests: 2},
		"long, Weir alone retries":      {size: long, requests: 1, fails: true},
		"long, the SDK retries as well": {size: long, w: retrying, requests: 2},
		"long, Weir keeps the body":     {size: long, buffer: 2 * long, requests: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &weir.Transport{Retry: &backoff.Policy{BufferBody: c.buffer}}
				vendor := before(t, transport, slowsDown(1))
				err := put(t.Context(), awsOver(transport, c.w), c.size)
				if n := len(vendor.Arrivals()); n != c.requests || (err != nil) != c.fails {
					t.Errorf("upload = %v after %d requests, want %d", err, n, c.requests)
				}
			})
		})
	}
}

// DynamoDB refuses with 400 and a code in the body. The lane waits for that, too.
func TestDynamoDBRefusesInItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := new(weir.Transport)
		var came atomic.Int32
		vendor := before(t, transport, func(w http.ResponseWriter, req *http.Request) {
			_, _ = io.Copy(io.Discard, req.Body)
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			if came.Add(1) > 3 {
				fmt.Fprint(w, "{}")
				return
			}
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`)
		})
		began := time.Now()
		err := dynamodbGet(recommended)(transport)(t.Context())
		if n := len(vendor.Arrivals()); err != nil || n != 4 || time.Since(began) == 0 {
			t.Errorf("GetItem = %v after %d requests and %v, want success after 4 and a wait", err, n, time.Since(began))
		}
	})
}
