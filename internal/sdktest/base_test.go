package sdktest

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/weirgo/weir"
)

// A base that sends one call several times, such as one with retries, is not stopped for it, and
// its last answer is the result.
func TestBaseThatTriesAgainByItself(t *testing.T) {
	var arrived atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if arrived.Add(1) <= 4 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	base := retryablehttp.NewClient()
	base.Logger, base.RetryWaitMin, base.RetryWaitMax = nil, time.Millisecond, time.Millisecond
	transport := &weir.Transport{Base: &retryablehttp.RoundTripper{Client: base}}
	defer transport.Close()
	resp, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || arrived.Load() != 5 {
		t.Errorf("GET = %s after %d requests, want 200 OK after 5", resp.Status, arrived.Load())
	}
}
