package exchange_test

import (
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// A redirect's hop waits in the lane of its own host.
func TestRedirectPassesLaneOfItsOwnHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Handler: testserver.Quirks()}, &weir.Transport{Limits: harness.Every(time.Second)})
		target := url.QueryEscape("http://other.test/body?size=3")
		for range 2 {
			resp, err := r.Client.Get("http://one.test/redirect?to=" + target)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 200 || resp.Request.URL.Host != "other.test" {
				t.Errorf("GET = %d from %s, want 200 from other.test", resp.StatusCode, resp.Request.URL.Host)
			}
		}
		harness.WantEqual(t, "lanes", r.Keys(), []string{"one.test", "other.test"})
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 0, time.Second, time.Second})
	})
}

// A pause of one host does not delay the other.
func TestRedirectedHostIsPausedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{
			Handler: testserver.Quirks(),
			Faults:  []testserver.Fault{{First: 2, Last: 2, Do: testserver.Answer, Header: harness.Hints("5")}},
		}, new(weir.Transport))
		resp, err := r.Client.Get("http://one.test/redirect?to=" + url.QueryEscape("http://other.test/body"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 0, 5 * time.Second})
		for _, lane := range r.Transport.Snapshot() {
			if lane.Key == "one.test" && lane.Paused != 0 {
				t.Errorf("pause of one.test = %v, want none", lane.Paused)
			}
		}
	})
}

// Fields added by Prepare are not sent to a redirect's host, unless the user asks for it:
// http.Client strips its own credentials there.
func TestPrepareSignsNoRedirectToAnotherHost(t *testing.T) {
	to := func(host, next string) string { return "http://" + host + "/redirect?to=" + url.QueryEscape(next) }
	tests := []struct {
		name   string
		opened bool
		url    string
		want   []bool // for each hop: signed
	}{
		{"same host", false, to("one.test", "http://one.test/body"), []bool{true, true}},
		{"another host", false, to("one.test", "http://other.test/body"), []bool{true, false}},
		{"another port", false, to("one.test", "http://one.test:8080/body"), []bool{true, false}},
		{"on from another host", false, to("one.test", to("other.test", "http://other.test/body")), []bool{true, false, false}},
		{"back from another host", false, to("one.test", to("other.test", "http://one.test/body")), []bool{true, false, false}},
		{"another host, opted in", true, to("one.test", "http://other.test/body"), []bool{true, true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []bool
				handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					got = append(got, req.Header.Get("Authorization") == "secret")
					testserver.Quirks().ServeHTTP(w, req)
				})
				r := harness.PipeRig(t, &testserver.Vendor{Handler: handler}, &weir.Transport{PrepareRedirects: tt.opened, Prepare: func(req *http.Request) error {
					req.Header.Set("Authorization", "secret")
					return nil
				}})
				resp, err := r.Client.Get(tt.url)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				harness.WantEqual(t, "signed", got, tt.want)
			})
		})
	}
}
