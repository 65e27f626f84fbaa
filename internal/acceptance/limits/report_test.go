package limits_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// wantReport fails the test unless the report is as wanted, except for its signal.
func wantReport(t *testing.T, what string, got, want weir.Report) {
	t.Helper()
	got.Signal = want.Signal
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("report of %s = %+v, want %+v", what, got, want)
	}
}

func TestReportSaysWhatACallWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{
			{First: 3, Last: 3, Do: testserver.Answer, Header: harness.Hints("5")},
		}}, &weir.Transport{Limits: []throttle.Limit{throttle.LeakyBucket(1, time.Second).Named("mail")}})
		for _, want := range []weir.Report{
			{Attempts: 1},
			{Attempts: 1, Waited: time.Second, Reason: throttle.ReasonRate, Limit: "mail"},
			{Attempts: 2, Waited: 6 * time.Second, Reason: throttle.ReasonPause},
		} {
			want.Lane = "vendor.test"
			got, ok := weir.ReportOf(r.Call())
			if !ok {
				t.Error("ReportOf = false, want true")
			}
			wantReport(t, fmt.Sprint(want.Attempts, " attempts"), got, want)
		}
	})
}

func TestReportOfARefusalHasItsSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: harness.Hints("600")}}}, &weir.Transport{})
		got, ok := weir.ReportOf(r.Call())
		if s := got.Signal; !ok || !s.Throttled || s.RetryAfter != 600*time.Second || got.Attempts != 1 {
			t.Errorf("ReportOf = %+v, %v, want a refusal for 600 s", got, ok)
		}
		_, err := r.Client.Get(r.Server.URL)
		var ours *weir.Error
		if err = fmt.Errorf("sdk: %w", err); !errors.As(err, &ours) {
			t.Fatalf("GET = %v, want an *Error", err)
		}
		wantReport(t, "a call that was rejected", ours.Report(), weir.Report{Lane: "vendor.test"})
	})
}

func TestReportOfAnErrorHasWaitsAndTheLastSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{
			{Last: 1, Do: testserver.Answer, Header: harness.Hints("5")}, {First: 2, Do: testserver.ResetEarly},
		}}, &weir.Transport{Retry: harness.After(0)})
		got := r.Get(t.Context(), "a")
		var ours *weir.Error
		if !errors.As(got.Err, &ours) {
			t.Fatalf("GET = %+v, want an *Error", got)
		}
		report := ours.Report()
		wantReport(t, "a failed call", report, weir.Report{Lane: "vendor.test", Attempts: ours.Attempts, Waited: 5 * time.Second, Reason: throttle.ReasonPause})
		if report.Attempts < 2 || report.Signal.RetryAfter != 5*time.Second {
			t.Errorf("report = %+v, want several attempts and the last signal", report)
		}
	})
}

// A wait counts even if the caller gives up.
func TestReportOfACallThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(1, time.Minute, 1).Named("mail")}})
		r.Spend()
		r.Client.Timeout = 2 * time.Second
		call := r.Start("first in line")
		_, err := r.Client.Get(r.Server.URL)
		var ours *weir.Error
		if !errors.As(err, &ours) {
			t.Fatalf("GET = %v, want an *Error", err)
		}
		wantReport(t, "a call that was rejected at once", ours.Report(), weir.Report{Lane: "vendor.test"})
		r.Want("GET", <-call, 200)
	})
}

func TestReportOfARedirectIsOfItsLastHop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path != "/there" {
				http.Redirect(w, req, "/there", http.StatusFound)
			}
		})}, &weir.Transport{Limits: []throttle.Limit{throttle.LeakyBucket(1, time.Second).Named("mail")}})
		got, ok := weir.ReportOf(r.Call())
		if !ok {
			t.Error("ReportOf = false, want true")
		}
		wantReport(t, "the second hop", got, weir.Report{Lane: "vendor.test", Attempts: 1, Waited: time.Second, Reason: throttle.ReasonRate, Limit: "mail"})
		for what, resp := range map[string]*http.Response{"nil": nil, "a response of nobody": {}} {
			if _, ok := weir.ReportOf(resp); ok {
				t.Errorf("ReportOf %s = true, want false", what)
			}
		}
	})
}

// A response's own call counts, whatever Transport or request its base has used, and whose context
// the call had.
func TestReportIsOfTheResponsesOwnCall(t *testing.T) {
	tokens := []throttle.Limit{throttle.TokenBucket(10, time.Second, 10).Of("tokens")}
	var shown *http.Request // that of the first response, as from a cache
	base := harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
		if shown == nil {
			shown = req
		}
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: shown}, nil
	})
	inner := &weir.Transport{Base: base}
	outer := &weir.Transport{Base: inner, Limits: tokens, Cost: func(*http.Request, throttle.Limit) int { return 1 }}
	defer inner.Close()
	defer outer.Close()
	for range 2 {
		resp, err := outer.RoundTrip(harness.GetOf("vendor.test"))
		if err != nil {
			t.Fatal(err)
		}
		if err := weir.Settle(resp, "tokens", 2); err != nil {
			t.Errorf("Settle = %v", err)
		}
		ctx, cancel := context.WithCancel(resp.Request.Context())
		if foreign, ok := weir.ReportOf(&http.Response{Request: harness.GetOf("vendor.test").WithContext(ctx)}); ok {
			t.Errorf("report of another client's response = %+v, want none", foreign)
		}
		cancel()
	}
}
