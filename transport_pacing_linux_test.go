package weir_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/throttle"
)

func TestPrecisePacingReachesTheLanes(t *testing.T) {
	for _, precise := range []bool{false, true} {
		tr := &weir.Transport{
			Base: baseFunc(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			}),
			Limits:        []throttle.Limit{throttle.LeakyBucket(100, time.Second)},
			PrecisePacing: precise,
		}
		before := timerfds(t)
		for range 2 { // the second one waits
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://vendor.test/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		if used := timerfds(t) > before; used != precise {
			t.Errorf("PrecisePacing %v: a timer of the kernel is used: %v", precise, used)
		}
		tr.Close()
	}
}

// timerfds returns the number of timers of the kernel that this process has.
func timerfds(t *testing.T) (n int) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == "anon_inode:[timerfd]" {
			n++
		}
	}
	return n
}
