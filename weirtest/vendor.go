package weirtest

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// A Vendor is an API with limits. It grants a request if all of its limits do, and
// refuses it otherwise. The zero Vendor has no limits and answers 200.
//
// [New] serves one for a test. Any other http.Server may serve it, too; then it
// does not know the connections. Set the fields before the first request. A Vendor
// is safe for concurrent use.
type Vendor struct {
	URL string // of the root, without a slash at the end; empty unless New made the Vendor

	Limits  []Limit // all must grant; empty: no limit
	Dialect Dialect // what answers report; nil: nothing, so that refusals are bare
	Faults  []Fault // the first one that hits a request acts; empty: no fault

	// Key returns the account of a request, such as its Authorization. Each account
	// has limits and pauses of its own. If nil, all requests share one.
	Key func(*http.Request) string

	// Handler answers granted requests. If nil, the answer is 200 with a short text.
	Handler http.Handler

	RefusalStatus int           // status of a refusal by the limits; zero: 429
	MaxRefusals   int           // refusals by the limits that Check allows; zero: none
	Delivery      time.Duration // longest trip of a refusal plus a request; zero: see the package documentation

	once   sync.Once
	server testserver.Vendor
	serves *testserver.Server // nil unless New made the Vendor
	bubble bool
}

// An Arrival is one request as it reached a [Vendor].
type Arrival struct {
	At      time.Duration // since the vendor's start
	Method  string
	Path    string
	Key     string // what Vendor.Key returned
	Status  int    // the status sent; zero: none yet, or never one
	Granted bool   // the limits granted it
}

// New serves a vendor on a loopback port, or over in-memory pipes in a
// testing/synctest bubble, until the test ends. If there is no port, the test
// fails. For example, New(t, TokenBucket(50, time.Second, 10)) enforces one limit. It
// panics if a limit is the zero Limit.
func New(tb testing.TB, limits ...Limit) *Vendor {
	tb.Helper()
	if slices.Contains(limits, Limit{}) {
		panic("weirtest: the zero Limit is not valid")
	}
	v := &Vendor{Limits: limits, bubble: inBubble()}
	open := testserver.Listen
	if v.bubble {
		open = testserver.Pipe
	}
	v.server.Start()
	v.serves = testserver.Run(tb, open, v)
	v.URL = v.serves.URL
	return v
}

// inBubble reports whether the caller is in a bubble. The only test is Wait, which panics outside
// of one, and if another goroutine of the bubble already waits.
func inBubble() (in bool) {
	defer func() {
		e := recover()
		in = e == nil || e == "wait already in progress"
	}()
	synctest.Wait()
	return true
}

// Transport returns a new transport whose connections all lead to the vendor,
// whatever host a request names, for https too. The caller may change it. It panics
// unless [New] made the Vendor.
func (v *Vendor) Transport() *http.Transport {
	if v.serves == nil {
		panic("weirtest: New did not make this Vendor")
	}
	return v.serves.Transport()
}

// Client returns a new client over a new [Vendor.Transport].
func (v *Vendor) Client() *http.Client { return &http.Client{Transport: v.Transport()} }

// ServeHTTP records the request, then breaks, refuses or answers.
func (v *Vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.once.Do(v.configure)
	v.server.ServeHTTP(w, r)
}

// configure gives the fields to the server.
func (v *Vendor) configure() {
	for _, l := range v.Limits {
		v.server.Limits = append(v.server.Limits, l.rule)
	}
	for _, f := range v.Faults {
		v.server.Faults = append(v.server.Faults, f.toServer())
	}
	if write := v.Dialect; write != nil {
		v.server.Styles = []testserver.Style{func(h http.Header, d testserver.Decision) { write(h, answerOf(d)) }}
	}
	v.server.Key, v.server.Handler, v.server.RefusalStatus = v.Key, v.Handler, v.RefusalStatus
}

// Arrivals returns the requests so far, in the order of their arrival. Request n
// of a [Breach] is the one at n - 1.
func (v *Vendor) Arrivals() []Arrival {
	var all []Arrival
	for _, a := range v.server.Arrivals() {
		all = append(all, Arrival{At: a.At, Method: a.Method, Path: a.Path, Key: a.Key, Status: a.Status, Granted: a.Granted})
	}
	return all
}
