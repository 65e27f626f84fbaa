package weirtest_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weirgo/weir/weirtest"
)

// A verdict is a testing.TB that keeps Check's output.
type verdict struct {
	testing.TB
	text string
}

func (v *verdict) Helper() {}
func (v *verdict) Errorf(format string, args ...any) {
	v.text += fmt.Sprintf(format, args...) + "\n"
}

// check returns Check's output for the vendor's requests.
func check(t *testing.T, v *weirtest.Vendor) string {
	said := &verdict{TB: t}
	v.Check(said)
	return said.text
}

// get sends a GET, reads the answer whole, and returns its status and header.
func get(t *testing.T, client *http.Client, url string) (int, http.Header) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header
}

// counts returns the breaches of each rule.
func counts(v *weirtest.Vendor) map[string]int {
	n := make(map[string]int)
	for _, b := range v.Breaches() {
		n[b.Rule]++
	}
	return n
}

// everywhere runs a test over sockets and in a bubble.
func everywhere(t *testing.T, test func(*testing.T)) {
	t.Run("sockets", test)
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, test) })
}

// calls sends calls from several workers, each to a path of its own.
func calls(t *testing.T, client *http.Client, url string, workers, each int) {
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range each {
				get(t, client, fmt.Sprintf("%s/%d/%d", url, w, i))
			}
		})
	}
	all.Wait()
}

// asked returns a 429 that asks for a wait of seconds.
func asked(number int, seconds string) weirtest.Fault {
	return weirtest.Fault{First: number, Last: number, Status: 429, Header: http.Header{"Retry-After": {seconds}}}
}
