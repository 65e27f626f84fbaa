package peerbench

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

func TestWorkMakesEachCallOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Service: time.Second, Faults: []testserver.Fault{{First: 3, Last: 3, Status: 500}}}
		server := testserver.Run(t, testserver.Pipe, vendor)
		done := Work{Calls: 10, Workers: 4}.Through(server.Transport(), server.URL)
		if got := len(vendor.Arrivals()); got != 10 || done.Failed != 1 || len(done.Took) != 10 {
			t.Errorf("%d arrived, %d failed, %d timed, want 10, 1 and 10", got, done.Failed, len(done.Took))
		}
		if done.Wall != 3*time.Second || done.Took[9] != time.Second {
			t.Errorf("took %v, one call up to %v, want 3s and 1s", done.Wall, done.Took[9])
		}
	})
}

func TestWorkEndsWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.Run(t, testserver.Pipe, &testserver.Vendor{Service: time.Hour})
		done := Work{Calls: 10, Workers: 4, Within: time.Minute}.Through(server.Transport(), server.URL)
		if done.Wall != time.Minute || done.Failed != 10 {
			t.Errorf("%d failed within %v, want 10 within 1m0s", done.Failed, done.Wall)
		}
	})
}

func TestObedientWaitsAsAsked(t *testing.T) {
	for after, least := range map[string]time.Duration{"3": 3 * time.Second, "": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			refusal := testserver.Fault{Last: 1, Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {after}}}
			server := testserver.Run(t, testserver.Pipe, &testserver.Vendor{Faults: []testserver.Fault{refusal}})
			done := Work{Calls: 1, Workers: 1}.Through(Obedient(server.Transport()), server.URL)
			if done.Failed != 0 || done.Wall < least || done.Wall >= 2*least {
				t.Errorf("Retry-After %q: %d failed after %v, want none after %v to %v", after, done.Failed, done.Wall, least, 2*least)
			}
		})
	}
}
