package weir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/throttle"
)

// A shown is the JSON of a page.
type shown struct {
	Lanes, Found, Waiting, Paused int
	Operate                       bool
	Rows                          []struct {
		Key     string
		Use     float64
		Paused  float64
		Limits  []struct{ Limit string }
		Learned string
		Who     string
		Calls   string
		Past    struct{ Use []float64 }
	}
}

// look returns what a page shows, as JSON.
func look(t *testing.T, page http.Handler, query string) (s shown) {
	t.Helper()
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?format=json&"+query, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return s
}

// laned returns a transport with a lane for each key, each of which was used once.
func laned(t *testing.T, keys ...string) *weir.Transport {
	t.Helper()
	transport := &weir.Transport{
		Base:   served{},
		Limits: []throttle.Limit{throttle.TokenBucket(1, time.Hour, 4)},
		Key:    func(req *http.Request) string { return req.Header.Get("X-Key") },
	}
	t.Cleanup(func() { _ = transport.Close() })
	for _, key := range keys {
		req := httptest.NewRequest(http.MethodGet, "http://vendor.example/", nil)
		req.Header.Set("X-Key", key)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	return transport
}

// served is a base that serves every request.
type served struct{}

func (served) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// operated returns the answer to a form, sent from a site.
func operated(page http.Handler, site string, form url.Values) (status int, text string) {
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", site)
	w := httptest.NewRecorder()
	page.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

func TestPageShowsLanes(t *testing.T) {
	page := weir.Handler(laned(t, "b", "a", "a", "<script>"))
	s := look(t, page, "")
	if s.Lanes != 3 || s.Found != 3 || s.Operate || len(s.Rows) != 3 || s.Rows[0].Key != "a" || math.Abs(s.Rows[0].Use-0.5) > 0.001 || s.Rows[0].Limits[0].Limit != "1/h burst 4" {
		t.Errorf("the page shows %+v, want three lanes, a first because half of it is used", s)
	}
	if s := look(t, page, "sort=key&n=1&q=b"); s.Found != 1 || s.Rows[0].Key != "b" {
		t.Errorf("a search for b shows %+v", s)
	}
	if s := look(t, page, "sort=key"); s.Rows[0].Key != "<script>" || len(s.Rows[0].Past.Use) == 0 {
		t.Errorf("by key the page shows %+v, want <script> first, and its past", s)
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?q=%22%3E%3Cscript%3E", nil))
	if text := w.Body.String(); strings.Contains(text, `"><script>"`) || strings.Contains(text, "{{") {
		t.Errorf("the page has the search unescaped, or a place that was not filled:\n%s", text)
	}
	if text := get(t, page, "/"); !strings.Contains(text, "<td>&lt;script&gt;<td>") || !strings.Contains(text, "1/h burst 4: 2 left") {
		t.Errorf("the table lacks a lane or its limit:\n%s", text)
	}
}

// get returns the body of an answer.
func get(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("GET %s = %d, %v", path, w.Code, err)
	}
	return string(text)
}

func TestPageIsReadOnlyUnlessAllowed(t *testing.T) {
	transport := laned(t, "a")
	page := weir.Handler(transport)
	pause := url.Values{"do": {"pause"}, "key": {"a"}, "for": {"90s"}}
	if status, _ := operated(page, "same-origin", pause); status != http.StatusForbidden {
		t.Errorf("a form on a page that nobody may operate = %d, want 403", status)
	}
	page = weir.Handler(transport)
	page.Operate = func(*http.Request) bool { return true }
	if status, _ := operated(page, "cross-site", pause); status != http.StatusForbidden || transport.Snapshot()[0].Paused > 0 {
		t.Errorf("a form of another site = %d, want 403", status)
	}
	if status, text := operated(page, "same-origin", pause); status != http.StatusNoContent || transport.Snapshot()[0].Paused < time.Minute {
		t.Errorf("a pause = %d %s, and %v left of it, want about 90 s", status, text, transport.Snapshot()[0].Paused)
	}
	if s := look(t, page, ""); s.Paused != 1 || !s.Operate {
		t.Errorf("after a pause the page shows %+v", s)
	}
	if status, _ := operated(page, "same-origin", url.Values{"do": {"resume"}, "key": {"a"}}); status != http.StatusNoContent || transport.Snapshot()[0].Paused > 0 {
		t.Errorf("after a resume %v are left of the pause", transport.Snapshot()[0].Paused)
	}
	if status, _ := operated(page, "same-origin", url.Values{"do": {"limits"}, "limits": {"5/s burst 2, 100/m"}}); status != http.StatusNoContent || len(transport.Snapshot()[0].Limits) != 2 {
		t.Errorf("limits = %d, and now %+v", status, transport.Snapshot()[0].Limits)
	}
	for _, form := range []url.Values{
		{"do": {"pause"}, "key": {"a"}, "for": {"-1s"}}, {"do": {"pause"}, "for": {"soon"}}, {"do": {"limits"}, "limits": {"x"}}, {"do": {"drop"}}, {},
	} {
		if status, text := operated(page, "same-origin", form); status != http.StatusBadRequest || !strings.HasPrefix(text, "weir: ") && !strings.HasPrefix(text, "throttle: ") {
			t.Errorf("%v = %d %s, want 400 and what was wrong", form, status, text)
		}
	}
}

func TestPageOfTenThousandLanesIsBounded(t *testing.T) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint("customer-", i)
	}
	transport := laned(t, keys...)
	page := weir.Handler(transport)
	if s := look(t, page, "q=customer-99"); s.Lanes != 10_000 || s.Found != 111 || len(s.Rows) != 100 {
		t.Errorf("of %d lanes %d are found and %d shown, want 10000, 111 and 100", s.Lanes, s.Found, len(s.Rows))
	}
	if text := get(t, page, "/?n=5000"); len(text) > 1<<20 {
		t.Errorf("the page has %d bytes", len(text))
	}
}

// A pause by hand holds the calls of its lane until its end, and no others.
func TestPauseHoldsOneLane(t *testing.T) {
	transport := laned(t, "a", "b")
	if err := transport.Pause("a", 0); err == nil || !strings.Contains(err.Error(), `lane "a" for 0s`) {
		t.Errorf("a pause of nothing = %v", err)
	}
	if err := transport.Pause("a", 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	s := transport.Snapshot()
	if s[0].Paused <= 0 || s[1].Paused > 0 {
		t.Errorf("pauses = %v and %v, want the first alone", s[0].Paused, s[1].Paused)
	}
}

// A pause of 100 s takes 1,000 permits of 10/s, but no more than all of the limit is used.
func TestPausedLaneHasNothingLeft(t *testing.T) {
	transport := laned(t, "a")
	if err := errors.Join(transport.SetLimits(throttle.TokenBucket(10, time.Second, 10)), transport.Pause("a", 100*time.Second)); err != nil {
		t.Fatal(err)
	}
	page := weir.Handler(transport)
	if use := look(t, page, "").Rows[0].Use; use != 1 {
		t.Errorf("%v of the limit is used, want all of it", use)
	}
	if text := get(t, page, "/"); !strings.Contains(text, "10/s burst 10: 0 left") {
		t.Errorf("the table lacks a limit of which nothing is left:\n%s", text)
	}
}

// A lane shows who stands in its line, and what became of its calls.
func TestPageShowsWhoWaitsAndWhatBecameOfCalls(t *testing.T) {
	transport := laned(t, "a", "a", "a", "a") // which spends all
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, in := range []context.Context{weir.WithTenant(ctx, "acme", 1), weir.WithTenant(ctx, "acme", 1), weir.WithPriority(ctx, weir.PriorityHigh)} {
		all.Go(func() {
			req := httptest.NewRequest(http.MethodGet, "http://vendor.example/", nil).WithContext(in)
			req.Header.Set("X-Key", "a")
			_, _ = transport.RoundTrip(req)
		})
	}
	for inLine(transport) < 3 {
		time.Sleep(time.Millisecond)
	}
	page := weir.Handler(transport)
	if r := look(t, page, "").Rows[0]; r.Who != "acme: 2\nhigh: 1" || r.Calls != "4 at once" {
		t.Errorf("in line stand %q, and of calls the page says %q", r.Who, r.Calls)
	}
	cancel()
	all.Wait()
	if text := get(t, weir.Handler(transport), "/"); !strings.Contains(text, "4 at once\n3 held, ") {
		t.Errorf("the table lacks those who gave up:\n%s", text)
	}
}
