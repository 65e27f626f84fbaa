package weir_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A loginError is an error of a base's own, with a URL somewhere behind it.
type loginError struct{ err error }

func (e *loginError) Error() string { return "login: " + e.err.Error() }
func (e *loginError) Unwrap() error { return e.err }

// A quotedError shows the URL of the error behind it in a text of its own.
type quotedError struct{ inner *url.Error }

func (e quotedError) Error() string { return "no way to " + e.inner.URL + " today" }
func (e quotedError) Unwrap() error { return e.inner }

func TestErrorKeepsChainWithoutURLs(t *testing.T) {
	at := func(err error) *url.Error {
		return &url.Error{Op: "Get", URL: "http://token.test/?secret=1", Err: err}
	}
	tests := []struct {
		name string
		err  error
		text string
	}{
		{"bare", harness.ErrAny, ": any error"},
		{"of a client", at(harness.ErrAny), ": any error"},
		{"of a client behind a client", at(at(harness.ErrAny)), ": any error"},
		{"of a type of its own", &loginError{at(harness.ErrAny)}, ": login: any error"},
		{"of its own, behind a client", at(&loginError{at(harness.ErrAny)}), ": login: any error"},
		{"wrapped", fmt.Errorf("proxy: %w", at(harness.ErrAny)), ": proxy: any error"},
		{"joined", errors.Join(&loginError{at(harness.ErrAny)}, at(harness.ErrAny)), ": login: any error\nany error"},
		{"in words of its own", quotedError{at(harness.ErrAny)}, ": no way to URL today"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := &weir.Transport{Retry: harness.After(0), Base: harness.BaseFunc(func(*http.Request) (*http.Response, error) { return nil, tt.err })}
			defer tr.Close()
			_, err := tr.RoundTrip(httptest.NewRequest(http.MethodPost, "http://vendor.test/", nil))
			if err == nil || !strings.HasSuffix(err.Error(), tt.text) || strings.Contains(err.Error(), "secret") {
				t.Errorf("RoundTrip = %q, want a text that ends in %q", err, tt.text)
			}
			var ours *weir.Error
			if !errors.As(err, &ours) || strings.Contains(ours.Err.Error(), "secret") {
				t.Errorf("cause = %v, want none with a URL", ours)
			}
			if !errors.Is(err, tt.err) || !errors.Is(err, harness.ErrAny) {
				t.Errorf("RoundTrip = %v, want %v in its chain", err, tt.err)
			}
			var own, wrapped *loginError
			if errors.As(tt.err, &own) && (!errors.As(err, &wrapped) || own != wrapped) {
				t.Errorf("RoundTrip = %v, want the type %T in its chain", err, own)
			}
		})
	}
}

// A program's tests may make an error without a cause.
func TestErrorWithoutACauseHasAText(t *testing.T) {
	if got := (&weir.Error{Lane: "a"}).Error(); got != `weir: lane "a": <nil>` {
		t.Errorf("Error = %q", got)
	}
}

// An error names what delayed the request, why, and by which limit, in readable numbers.
func TestErrorNamesWhatHeldTheRequest(t *testing.T) {
	gold := throttle.TokenBucket(7, time.Hour, 1).Named("gold")
	tests := []struct {
		name   string
		limit  throttle.Limit
		header http.Header
		reason throttle.Reason
		held   string
		says   string
	}{
		{"limit", throttle.TokenBucket(7, time.Hour, 1), nil, throttle.ReasonRate, "7/h",
			`held back by this client's own limiter, not by the server: wait of 8m34s or more for rate: limit "7/h"`},
		{"named limit", gold, nil, throttle.ReasonRate, "gold", `limit "gold"`},
		{"pause", throttle.TokenBucket(7, time.Second, 100), harness.Hints("58"), throttle.ReasonPause, "",
			"held back by this client, because the server asked for a pause: wait of 57.9s or more for pause"},
		{"long pause", throttle.TokenBucket(7, time.Second, 100), harness.Hints("600"), throttle.ReasonPause, "",
			"held back by this client, because the server asked for a pause: wait of 9m59s or more for pause"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vendor := &testserver.Vendor{}
				if tt.header != nil {
					vendor.Faults = []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: tt.header}}
				}
				r := harness.PipeRig(t, vendor, &weir.Transport{Limits: []throttle.Limit{tt.limit}, Retry: backoff.None})
				r.Get(t.Context(), "a")
				time.Sleep(12_345_678)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				got := r.Get(ctx, "b")
				var ours *weir.Error
				if !errors.As(got.Err, &ours) || ours.Reason != tt.reason || ours.Limit != tt.held || !strings.Contains(got.Err.Error(), tt.says) {
					t.Errorf("GET = %+v, %v, want reason %q, limit %q and in the text: %s", ours, got.Err, tt.reason, tt.held, tt.says)
				}
			})
		})
	}
}
