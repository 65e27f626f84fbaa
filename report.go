package weir

import (
	"cmp"
	"net/http"
	"time"

	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/throttle"
)

// A Report says what a call waited for, how often it was sent, and what the vendor
// reported.
type Report struct {
	Lane     string          // the lane's key; with Keys, that of the lane that held the call, else of the widest
	Waited   time.Duration   // wait in line before all attempts together, without delays before retries; zero: none
	Reason   throttle.Reason // of the last such wait; "": there was none
	Limit    string          // the limit that held it then, as in [Error]; "": none did
	Attempts int             // that were sent; zero: none was
	Signal   headers.Signal  // what the header of the response reports; the zero value: nothing, or there is no response
}

// ReportOf returns the report of the call behind a response. The response may have gone
// through an [http.Client], which has followed redirects: then the report is of the last
// hop. Its body may be closed. Times in Signal count from the response. Those that a header
// states as instants count from the call of ReportOf if the response has no Date.
//
// Ok is false if the response came from no Transport, or from one with UnguardedResends
// for which nothing else is kept of a call: a bound of InFlight, Cost, Track, or an
// AttemptTimeout. It is safe for concurrent use.
func ReportOf(resp *http.Response) (r Report, ok bool) {
	a := attemptOf(resp)
	if a == nil {
		return Report{}, false
	}
	r = Report{Lane: a.lane.Key, Attempts: int(a.number), Signal: signalOf(observerOf(a.lane).dialect(resp.Request), resp)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked != nil && a.asked.waited != nil {
		w := a.asked.waited
		r.Lane, r.Waited, r.Reason, r.Limit = w.lane.Key, w.total, w.reason, w.lane.Label(w.limit)
	}
	return r, true
}

// Report returns the report of the call that got no response. SDKs wrap the error: find it
// with errors.As. Signal is that of the last response that was thrown away.
func (e *Error) Report() Report {
	r := Report{Lane: e.Lane, Waited: e.waited.total, Reason: e.waited.reason, Limit: e.waited.limit, Attempts: e.Attempts}
	if e.Status != 0 {
		r.Signal = signalOf(e.dialect, &http.Response{StatusCode: e.Status, Header: e.Header})
	}
	return r
}

// signalOf returns what the header of a response reports.
func signalOf(dialect *headers.Dialect, resp *http.Response) headers.Signal {
	signal, _ := dialect.ParseHeader(resp, time.Now())
	return signal
}

// A waited is how long a call has waited in line, and what held it in the last wait that it
// had. The zero value has not waited.
type waited struct {
	total  time.Duration
	reason throttle.Reason
	limit  string     // its name
	lane   *lane.Lane // that held it; nil: it has not waited
}

// hasWaited adds a wait that has ended with err, and returns the lane that held it; nil: none
// did. It began at an instant; zero: when the turn arrived.
func (c *call) hasWaited(began throttle.Instant, err error) (held *lane.Lane) {
	reason, limit := c.turn.Held()
	if reason == "" {
		return nil
	}
	ended := c.turn.Departed()
	if err != nil {
		ended = c.lane.Now()
	}
	stood := max(0, ended.Sub(cmp.Or(began, c.turn.Arrived(), ended)))
	held = c.laneThat(c.turn.HeldIn())
	n := &observerOf(held).counts
	n.held.Add(1)
	n.waited.Add(int64(stood))
	if c.waited != nil {
		stood += c.waited.total
	}
	c.waited = &waited{stood, reason, limit, held} // attempts keep the one before
	return held
}
