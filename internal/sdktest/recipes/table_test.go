package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir"
)

const (
	none  = "-" // an SDK without retries
	index = "../../../docs/sdk/README.md"
)

// The table of the index is the SDKs' results here. WEIR_SDK=write writes it.
func TestTableIsAsMeasured(t *testing.T) {
	requests := "| SDK | call | body | lines | 429: retries off | 429: on | 500: retries off | 500: on |\n" + strings.Repeat("| --- ", 8) + "|\n"
	errs := "| SDK | error of the last 429 | `*weir.Error` is found | tries of a rejected call: off, on | the context's deadline holds | spans, otelhttp outside | spans, otelhttp inside |\n" + strings.Repeat("| --- ", 7) + "|\n"
	for _, r := range rows {
		t.Run(r.page+" "+r.what, func(t *testing.T) {
			link := fmt.Sprintf("[%s](%s.md)", r.page, r.page)
			limited, broken := refusal{status: 429, after: "1"}, refusal{status: 500}
			off, seen, body := r.sent(t, recommended, limited)
			requests += fmt.Sprintf("| %s | `%s` | %s | %d | %d | %s | %s | %s |\n", link, r.what, body, r.lines(t),
				off, r.own(t, limited), first(r.sent(t, recommended, broken)), r.own(t, broken))
			found, tries := r.rejected(t, recommended)
			errs += fmt.Sprintf("| %s | %s | %s | %d, %s | %s | `%s` | `%s` |\n", link, typeOf(seen), yes(found), tries, r.rejectedOwn(t), yes(r.keepsDeadline(t)),
				r.spans(t, outside), r.spans(t, inside))
		})
	}
	text, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	now := between(between(string(text), "requests", requests), "errors", errs)
	if os.Getenv("WEIR_SDK") == "write" {
		if err := os.WriteFile(index, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if now != string(text) {
		t.Errorf("measured:\n%s\n%s\nif this is meant, write it: WEIR_SDK=write go test ./recipes", requests, errs)
	}
}

// between returns the text with another part between the two marks of a name.
func between(text, name, part string) string {
	marks := regexp.MustCompile(`(?s)(<!-- ` + name + ` -->\n).*?(<!-- end -->)`)
	return marks.ReplaceAllString(text, "${1}\n"+strings.ReplaceAll(part, "$", "$$")+"\n${2}")
}

// sent makes one call. It returns how many requests the vendor saw, the user's error, and the kind
// of the requests' body.
func (r *row) sent(t *testing.T, w way, refuse refusal) (n int, seen error, body string) {
	r.in(t, w, refuse, func(t *testing.T, g *rig) {
		if seen = g.call(t.Context()); seen == nil {
			t.Errorf("call = nil, want an error after endless %d", refuse.status)
		}
		n, body = len(g.vendor.Arrivals()), g.body
	})
	return n, seen, body
}

func first(n int, _ error, _ string) string { return fmt.Sprint(n) }

// own returns the requests with the SDK's own retries.
func (r *row) own(t *testing.T, refuse refusal) string {
	if r.retrying == nil {
		return none
	}
	return first(r.sent(t, retrying, refuse))
}

// rejected makes a call to a closed lane. It reports whether the user gets the lane's error, and
// returns how often the SDK tried.
func (r *row) rejected(t *testing.T, w way) (found bool, tries int) {
	r.in(t, w, refusal{times: -1}, func(t *testing.T, g *rig) {
		if err := g.call(t.Context()); err != nil {
			t.Error(err)
		}
		for _, lane := range g.transport.Snapshot() {
			if err := g.transport.Pause(lane.Key, time.Hour); err != nil {
				t.Error(err)
			}
		}
		g.tries = 0
		err := g.call(t.Context())
		tries = g.tries
		found = errors.Is(err, weir.ErrPaused) && errors.As(err, new(*weir.Error))
		if err == nil || len(g.vendor.Arrivals()) != 1 {
			t.Errorf("second call = %v after %d requests, want an error after 1", err, len(g.vendor.Arrivals()))
		}
	})
	return found, tries
}

// rejectedOwn returns the tries with the SDK's own retries.
func (r *row) rejectedOwn(t *testing.T) string {
	if r.retrying == nil {
		return none
	}
	_, tries := r.rejected(t, retrying)
	return fmt.Sprint(tries)
}

// keepsDeadline reports whether a call whose context ends before a pause is rejected at
// once.
func (r *row) keepsDeadline(t *testing.T) (kept bool) {
	r.in(t, recommended, refusal{status: 429, after: "40", times: 1}, func(t *testing.T, g *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_ = g.call(ctx)
		began := time.Now()
		err := g.call(ctx)
		found := errors.Is(err, weir.ErrDeadline) && errors.Is(err, context.DeadlineExceeded)
		if seen := seenBy(nil); errors.As(err, &seen) {
			found = true // the error is not passed on
		}
		kept = found && time.Since(began) == 0
	})
	return kept
}

// spans returns the spans of a call that is refused once.
func (r *row) spans(t *testing.T, w way) (text string) {
	r.in(t, w, refusal{status: 429, after: "1", times: 1}, func(t *testing.T, g *rig) { text = g.tree(t) })
	return text
}

// lines returns how many lines of the page a user adds or changes.
func (r *row) lines(t *testing.T) int {
	text, err := os.ReadFile("../../../docs/sdk/" + r.page + ".md")
	if err != nil {
		t.Error(err)
	}
	return strings.Count(string(text), "// +\n")
}

// A seenBy error stands for the error that a user gets.
type seenBy interface {
	error
	seen() string
}

// typeOf returns the type of the error that a user gets.
func typeOf(err error) string {
	if seen := seenBy(nil); errors.As(err, &seen) {
		return seen.seen()
	}
	return fmt.Sprintf("`%T`", cmp.Or(err, errors.New("no error")))
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}
