package headers_test

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/headers"
)

// The numbers of vectors in testdata/vectors.json. A file that lost some must not
// pass.
const (
	genericVectors = 145
	profileVectors = 51
)

// unsupported are the vectors that their vendor's dialect cannot express, each with the reason.
var unsupported = map[string]string{}

type vector struct {
	ID         string
	Vendor     string
	ObservedAt time.Time `json:"observed_at"`
	Status     int
	Path       string // of the request; "" if it is not known
	Headers    [][2]vectorValue
	Body       *string
	Unzipped   bool // by net/http, so that its length is not known
	Expect     struct {
		RetryAfter *float64 `json:"retry_after_s"`
		Quotas     []vectorQuota
		Throttled  bool
		Notes      string

		// Expectations of our own vectors only.
		Reason       headers.Reason
		Scope        headers.Scope
		NotProcessed bool `json:"not_processed"`
		Permanent    bool
		Violated     []string // nil: any
		Waits        *float64 `json:"waits_s"` // as Signal.Wait returns
	}
}

type vectorQuota struct {
	Name      string
	Limit     *float64
	Remaining *float64
	Reset     *float64 `json:"reset_s"`
	Window    *float64 `json:"window_s"`
	Unit      string
	Partition *string // nil: any
	ResetKind string  `json:"reset_kind"` // "window"; empty: any
}

// A vectorValue is a string, or a long one made of parts.
type vectorValue string

func (v *vectorValue) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, (*string)(v))
	}
	var parts struct {
		Prefix, Repeat, Suffix string
		Count                  int
	}
	err := json.Unmarshal(text, &parts)
	*v = vectorValue(parts.Prefix + strings.Repeat(parts.Repeat, parts.Count) + parts.Suffix)
	return err
}

func (v *vector) response() *http.Response {
	resp := &http.Response{StatusCode: v.Status, Header: http.Header{}, Body: http.NoBody}
	for _, field := range v.Headers {
		// net/http takes the white space around a value off.
		resp.Header.Add(string(field[0]), strings.Trim(string(field[1]), " \t"))
	}
	if v.Path != "" {
		resp.Request = &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: "vendor.example", Path: v.Path}}
	}
	if v.Body != nil {
		resp.Body = io.NopCloser(strings.NewReader(*v.Body))
		resp.ContentLength = int64(len(*v.Body))
		if v.Unzipped {
			resp.ContentLength, resp.Uncompressed = -1, true
		}
	}
	return resp
}

func readVectors(t testing.TB) []vector {
	t.Helper()
	return readVectorsOf(t, "testdata/vectors.json")
}

func readVectorsOf(t testing.TB, paths ...string) []vector {
	t.Helper()
	var file struct{ Vectors []vector }
	var all []vector
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file.Vectors = nil
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, file.Vectors...)
	}
	return all
}

func TestGenericVectors(t *testing.T) {
	ran := 0
	for _, v := range readVectors(t) {
		if !strings.HasPrefix(v.Expect.Notes, "generic") {
			continue
		}
		ran++
		t.Run(v.ID, func(t *testing.T) {
			var none *headers.Dialect
			v.check(t, none.Parse(v.response(), v.ObservedAt))
			v.check(t, headers.Parse(v.response(), v.ObservedAt))
		})
	}
	t.Logf("%d of %d generic vectors ran", ran, genericVectors)
	if ran != genericVectors {
		t.Errorf("%d generic vectors ran, want %d", ran, genericVectors)
	}
}

// A vendor's dialect must not lose facts that the general rules read.
func TestGenericVectorsInVendorsDialect(t *testing.T) {
	for _, v := range readVectors(t) {
		d, ok := headers.Lookup(v.Vendor)
		if !ok && v.Vendor != "hostile" {
			t.Errorf("Lookup(%q) finds nothing", v.Vendor)
		}
		if ok && strings.HasPrefix(v.Expect.Notes, "generic") {
			t.Run(v.ID, func(t *testing.T) { v.check(t, d.Parse(v.response(), v.ObservedAt)) })
		}
	}
}

func TestProfileVectors(t *testing.T) {
	ran := 0
	for _, v := range readVectors(t) {
		if !strings.HasPrefix(v.Expect.Notes, "profile") {
			continue
		}
		if reason, ok := unsupported[v.ID]; ok {
			t.Logf("%s is not supported: %s", v.ID, reason)
			continue
		}
		ran++
		t.Run(v.ID, func(t *testing.T) {
			d, ok := headers.Lookup(v.Vendor)
			if !ok {
				t.Fatalf("Lookup(%q) finds nothing", v.Vendor)
			}
			v.check(t, d.Parse(v.response(), v.ObservedAt))
		})
	}
	t.Logf("%d of %d profile vectors ran", ran, profileVectors)
	if want := profileVectors - len(unsupported); ran != want {
		t.Errorf("%d profile vectors ran, want %d", ran, want)
	}
}

// The vectors in testdata/vendors are from the vendors' documentation, whose addresses are in their
// notes.
func TestVendorsVectors(t *testing.T) {
	paths, err := filepath.Glob("testdata/vendors/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("Glob = %v, %v, want files", paths, err)
	}
	ids := map[string]bool{}
	for _, path := range paths {
		for _, v := range readVectorsOf(t, path) {
			if ids[v.ID] || !strings.Contains(v.Expect.Notes, "https://") {
				t.Errorf("%s: vector %q is there twice, or names no source", path, v.ID)
			}
			ids[v.ID] = true
			t.Run(v.ID, func(t *testing.T) {
				d, ok := headers.Lookup(v.Vendor)
				if !ok {
					t.Fatalf("Lookup(%q) finds nothing", v.Vendor)
				}
				got := d.Parse(v.response(), v.ObservedAt)
				v.check(t, got)
				e := v.Expect
				if got.Reason != e.Reason || got.Scope != e.Scope || got.NotProcessed != e.NotProcessed || got.Permanent != e.Permanent {
					t.Errorf("Parse = %+v, want reason %q, scope %v, not processed %v, permanent %v", got, e.Reason, e.Scope, e.NotProcessed, e.Permanent)
				}
				if e.Violated != nil && !slices.Equal(got.Violated, e.Violated) {
					t.Errorf("Violated = %q, want %q", got.Violated, e.Violated)
				}
				if wait, _ := got.Wait(); e.Waits != nil && wait.Seconds() != *e.Waits {
					t.Errorf("Wait = %v, want %v s", wait, *e.Waits)
				}
			})
		}
	}
}

func (v *vector) check(t *testing.T, got headers.Signal) {
	t.Helper()
	if got.Throttled != v.Expect.Throttled {
		t.Errorf("Throttled = %v, want %v", got.Throttled, v.Expect.Throttled)
	}
	if !same(got.RetryAfter.Seconds(), got.HasRetryAfter, v.Expect.RetryAfter) {
		t.Errorf("RetryAfter = %v, %v, want %v s", got.RetryAfter, got.HasRetryAfter, v.Expect.RetryAfter)
	}
	if len(got.Quotas) != len(v.Expect.Quotas) {
		t.Errorf("%d quotas, want %d: %+v", len(got.Quotas), len(v.Expect.Quotas), got.Quotas)
		return
	}
	for _, want := range v.Expect.Quotas {
		if !slices.ContainsFunc(got.Quotas, want.equals) {
			t.Errorf("quota %+v is not in %+v", want, got.Quotas)
		}
	}
}

func (want vectorQuota) equals(got headers.Quota) bool {
	return got.Name == want.Name && got.Unit == want.Unit && (want.Partition == nil || got.Partition == *want.Partition) &&
		(want.ResetKind == "" || got.ResetKind == headers.ResetWindow) &&
		same(got.Limit, got.HasLimit, want.Limit) &&
		same(got.Remaining, got.HasRemaining, want.Remaining) &&
		same(got.Reset.Seconds(), got.HasReset, want.Reset) &&
		same(got.Window.Seconds(), got.HasWindow, want.Window)
}

func same(got float64, has bool, want *float64) bool {
	if want == nil {
		return !has && got == 0
	}
	return has && math.Abs(got-*want) <= 0.01
}
