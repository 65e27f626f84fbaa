package lanes_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/throttle"
)

// The Transport is closed when a call of two keys, which one of their lanes has held, is about to
// wait again. It gets the answer that it has.
func TestCloseBeforeSecondWaitOfCallOfSeveralKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &weir.Transport{
			Keys:   func(*http.Request) []string { return []string{"customer", "account"} },
			Limits: []throttle.Limit{throttle.LeakyBucket(1, time.Second)},
			Base: harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
				resp := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{"X-Ratelimit-Bucket": {"h1"}}}
				if req.Body != nil {
					req.Body.Close()
					resp.StatusCode = http.StatusTooManyRequests
					resp.Header.Set("Retry-After", "1")
				}
				return resp, nil
			}),
		}
		defer transport.Close()
		first := harness.GetOf("discord.com")
		if resp, err := transport.RoundTrip(first); err != nil {
			t.Fatal(err)
		} else {
			resp.Body.Close()
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, first.URL.String(), strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		req.GetBody = func() (io.ReadCloser, error) {
			transport.Close()
			return io.NopCloser(strings.NewReader("body")), nil
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusTooManyRequests {
			t.Errorf("status %d, want 429", resp.StatusCode)
		}
	})
}
