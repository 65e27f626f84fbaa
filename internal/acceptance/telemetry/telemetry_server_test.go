package telemetry_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// hosted sends calls through one lane, each of which waits, is refused or is retried, and returns
// the recorded telemetry.
func hosted(t *testing.T, named bool, hosts ...string) (points []harness.Point, spans harness.SpanLog) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		spans = harness.NewSpanLog()
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{harness.Answered(1, testserver.Fault{Status: 500}), harness.Answered(2, testserver.Fault{})}},
			&weir.Transport{
				MeterProvider: log, TracerProvider: spans, ServerAddress: named, Retry: harness.After(time.Second),
				Key: func(*http.Request) string { return "account" }, Limits: []throttle.Limit{throttle.TokenBucket(1, time.Second, 1)},
			})
		for _, host := range hosts {
			req := r.Request(t.Context(), host)
			req.URL.Host = host
			r.Want("GET", r.Do(req), 200)
		}
		points = log.Points(t)
	})
	return points, spans
}

// A call's host is an attribute of the call's own records only.
func TestServerAddressIsAnAttributeOfCalls(t *testing.T) {
	points, spans := hosted(t, true, "a.test:8443", "b.test", "[2001:db8::1]:80", "b.test")
	with := map[string]bool{"weir.admissions": true, "weir.wait.duration": true, "weir.responses.throttled": true, "weir.retries": true}
	seen := map[string]bool{}
	for _, p := range points {
		host, ok := p.Attributes["server.address"]
		if seen[p.Name] = true; ok != with[p.Name] || strings.Contains(host, "8443") {
			t.Errorf("server.address of %s = %q, %v, want a host: %v", p.Name, host, ok, with[p.Name])
		}
	}
	for name := range with {
		if !seen[name] {
			t.Errorf("%s was not exported", name)
		}
	}
	for host, n := range map[string]float64{"a.test": 3, "b.test": 2, "2001:db8::1": 1} {
		harness.WantSum(t, points, n, "weir.admissions", "weir.lane=account", "server.address="+host)
	}
	for name, host := range map[string]string{"weir.wait": "b.test", "weir.backoff": "a.test"} {
		if all := spans.Named(name); len(all) == 0 || harness.Attributes(all[0])["server.address"] != host {
			t.Errorf("%d spans %s, want server.address %s of the first", len(all), name, host)
		}
	}
}

func TestServerAddressIsOptedIn(t *testing.T) {
	points, spans := hosted(t, false, "a.test", "b.test")
	if text := fmt.Sprint(points); strings.Contains(text, "server.address") || strings.Contains(text, "a.test") {
		t.Errorf("metrics = %s, want no host", text)
	}
	for _, s := range spans.Recorder.Ended() {
		if host, ok := harness.Attributes(s)["server.address"]; ok {
			t.Errorf("server.address of %s = %v, want none", s.Name(), host)
		}
	}
}

// Hosts, like keys, may be under others' control. Fifty have names, and calls of lanes without a
// name have no host.
func TestServerAddressesAreBounded(t *testing.T) {
	const calls = 1000
	log := harness.NewMeterLog()
	transport := &weir.Transport{Base: harness.Stub{}, MeterProvider: log, ServerAddress: true, Learn: weir.LearnOff, Key: func(req *http.Request) string { return req.URL.Path }}
	defer transport.Close()
	send := func(url string) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for i := range calls {
		send(fmt.Sprintf("http://host-%d.test/one", i))
	}
	for i := range calls {
		send(fmt.Sprintf("http://host-%d.test/%d", i%100, i))
	}
	points := log.Points(t)
	harness.WantSum(t, points, calls-50, "weir.admissions", "weir.lane=/one", "server.address=other")
	harness.WantSum(t, points, 2*calls, "weir.admissions")
	sets := 0
	for _, p := range points {
		if p.Name == "weir.admissions" {
			sets++
			if host, ok := p.Attributes["server.address"]; ok == (p.Attributes["weir.lane"] == "other") {
				t.Errorf("server.address of lane %s = %q", p.Attributes["weir.lane"], host)
			}
		}
	}
	if sets > 200 {
		t.Errorf("%d sets of attributes, want 200 at most", sets)
	}
}
