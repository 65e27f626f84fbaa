package testserver_test

import (
	"net/http"
	"testing"

	"github.com/weirgo/weir/internal/testserver"
)

// A style that panics leaves no permit in use.
func TestPanicOfAStyleGivesBackThePermit(t *testing.T) {
	panics := true
	v := &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(1)}, Styles: []testserver.Style{func(http.Header, testserver.Decision) {
		if panics {
			panics = false
			panic(http.ErrAbortHandler)
		}
	}}}
	s := testserver.Run(t, testserver.Listen, v)
	client := &http.Client{Transport: s.Transport()}
	if resp, err := client.Get(s.URL); err == nil {
		resp.Body.Close()
		t.Error("the first request was answered")
	}
	resp, err := client.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the second request has status %d, want 200", resp.StatusCode)
	}
}
