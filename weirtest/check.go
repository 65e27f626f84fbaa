package weirtest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

const (
	shown = 3 // breaches that Check prints for each rule

	// atOnce is a delivery that is over at the instant of the answer.
	atOnce time.Duration = -1

	// defaultDelivery is twenty times what a refusal takes over loopback with cores at
	// hand. It leaves nine tenths of the shortest Retry-After to judge by.
	defaultDelivery = 100 * time.Millisecond
)

// A Breach is one request with which a client broke a rule.
type Breach struct {
	Rule    string // "early", "pause" or "limit", as in the package documentation
	Request int    // number of the request, counted from 1

	text string
}

// String returns what was wrong, with its numbers.
func (b Breach) String() string { return b.text }

// A refusal is an answer that gave a time.
type refusal struct {
	testserver.Arrival
	number int
	until  time.Duration // that time, since the vendor's start
	field  string        // the field that gave it
}

// Check fails the test with the first requests that broke each rule, and the
// number of the others. It judges the requests so far, and may be called again.
func (v *Vendor) Check(tb testing.TB) {
	tb.Helper()
	count := make(map[string]int)
	for _, b := range v.Breaches() {
		if count[b.Rule]++; count[b.Rule] <= shown {
			tb.Errorf("weirtest: %s: %v", b.Rule, b)
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(count)) {
		if n := count[rule]; n > shown {
			tb.Errorf("weirtest: %s: and %d requests more", rule, n-shown)
		}
	}
}

// Breaches returns what [Vendor.Check] fails the test for, in the order of the
// requests. A request that broke the rule "limit" may have broken another, too.
func (v *Vendor) Breaches() []Breach {
	arrivals := v.server.Arrivals()
	over := arrivals.Filter(func(a testserver.Arrival) bool { return a.Over != nil })
	pauses, delivery := make(map[string][]refusal), v.delivery() // pauses by account
	var all []Breach
	for i, a := range arrivals {
		open := slices.DeleteFunc(pauses[a.Key], func(r refusal) bool { return r.until <= a.At })
		if b, ok := tooEarly(i+1, a, open, delivery); ok {
			all = append(all, b)
		}
		if a.Over != nil && len(over) > v.MaxRefusals {
			all = append(all, Breach{"limit", i + 1, fmt.Sprintf("request %d exceeded %v, as did %d of %d; the test allows %d",
				i+1, a.Over, len(over), len(arrivals), v.MaxRefusals)})
		}
		if r, ok := v.refusalOf(i+1, a); ok {
			open = append(open, r)
		}
		pauses[a.Key] = open
	}
	return all
}

// tooEarly returns the breach of a request that came during one of the pauses: by
// a refusal of the same call if there is one, and by the pause that ends last.
func tooEarly(number int, a testserver.Arrival, open []refusal, delivery time.Duration) (b Breach, ok bool) {
	var by refusal
	for _, r := range open {
		if !r.delivered(a, delivery) {
			continue
		}
		same := r.Method == a.Method && r.Path == a.Path && r.ID == a.ID
		if early := b.Rule == "early"; same && !early || same == early && r.until > by.until {
			by, b.Rule = r, "pause"
			if same {
				b.Rule = "early"
			}
		}
	}
	if b.Rule == "" {
		return b, false
	}
	b.Request = number
	b.text = fmt.Sprintf("request %d came %.3f s before the time that the answer to request %d gave (%s), %.3f s after that answer",
		number, (by.until - a.At).Seconds(), by.number, by.field, (a.At - by.Answered).Seconds())
	return b, true
}

// refusalOf returns the answer to a request as a refusal, if it gave a time.
func (v *Vendor) refusalOf(number int, a testserver.Arrival) (r refusal, ok bool) {
	if s := a.Status; s != http.StatusTooManyRequests && s != http.StatusServiceUnavailable && s != v.RefusalStatus {
		return r, false
	}
	fields := waits
	if !a.Granted {
		fields = resets
	}
	start := v.server.Start()
	until, field := given(a.Header, fields, start.Add(a.Answered))
	return refusal{a, number, until.Sub(start), field}, !until.IsZero()
}

// delivered reports whether the client had the refusal when it sent the request.
func (r refusal) delivered(a testserver.Arrival, delivery time.Duration) bool {
	if a.ID != "" && a.ID == r.ID {
		delivery = atOnce
	}
	return a.At > r.Answered+delivery
}

// delivery returns how long after a refusal a request is not blamed.
func (v *Vendor) delivery() time.Duration {
	switch {
	case v.Delivery != 0 || v.serves == nil:
		return cmp.Or(v.Delivery, defaultDelivery)
	case v.serves.Conns() == 1: // without a call beside it, each was sent after the answer before
		return atOnce
	case v.bubble:
		return 0
	}
	return defaultDelivery
}
