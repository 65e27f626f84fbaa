package testserver

import (
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// DefaultIDHeader is the request field recorded as [Arrival.ID].
const DefaultIDHeader = "X-Request-Id"

// A Vendor is an API with limits. It grants a request if all of its limits do,
// and refuses it otherwise. The zero Vendor has no limits and answers 200.
//
// Set the fields before the first request. [Vendor.SetLimits] and
// [Vendor.SetFaults] change them later. A Vendor is safe for concurrent use.
type Vendor struct {
	Limits  []Limit       // all must grant; empty: no limit
	Styles  []Style       // what answers report; empty: nothing
	Service time.Duration // time that it takes to answer a granted request; zero: none
	Spread  time.Duration // most extra time, drawn evenly; zero: always Service
	Faults  []Fault       // the first one that hits a request acts; empty: no fault

	// Key returns the account of a request. Each account has limits of its own. If
	// nil, all requests share one.
	Key func(*http.Request) string

	// Cost returns the permits that a request needs. If nil, each needs one.
	Cost func(*http.Request) int

	// Handler answers granted requests, after Service. If nil, the body is read
	// and the answer is 200 with a short text.
	Handler http.Handler

	RefusalStatus int           // zero: 429
	RefusalBody   string        // empty: a short text
	IDHeader      string        // empty: DefaultIDHeader
	Skew          time.Duration // how far the vendor's wall clock is ahead of this machine's

	mu       sync.Mutex
	start    time.Time
	accounts map[string][]meter
	arrivals Arrivals
}

// KeyHeader returns a function for [Vendor.Key] that reads a request field,
// such as "Authorization".
func KeyHeader(field string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(field) }
}

// Start begins the vendor's clock, unless it runs, and returns the instant from
// which [Arrival.At] counts. Servers call it when they are opened on the Vendor
// itself; otherwise the first request begins the clock.
func (v *Vendor) Start() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.begin()
	return v.start
}

// Arrivals returns a copy of the record so far.
func (v *Vendor) Arrivals() Arrivals {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.arrivals)
}

// SetLimits replaces the limits. A limit takes over the count of the previous one in its place, if
// that has the same algorithm. Otherwise it begins at zero.
func (v *Vendor) SetLimits(limits ...Limit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.begin()
	v.Limits = limits
	for key, old := range v.accounts {
		v.accounts[key] = v.newMeters(old)
	}
}

// SetFaults replaces the faults. Their instants and numbers still count from
// the vendor's start.
func (v *Vendor) SetFaults(faults ...Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Faults = faults
}

// ServeHTTP records the request, then breaks, refuses or answers.
func (v *Vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wireOf(r).addRequest()
	call := v.arrive(r)
	rec := &recorder{ResponseWriter: w, call: call}
	v.answer(rec, r, call)
	rec.finish()
}

// answer breaks, refuses or answers a request that has been decided.
func (v *Vendor) answer(w http.ResponseWriter, r *http.Request, call *call) {
	if v.Skew != 0 {
		w.Header().Set("Date", time.Now().Add(v.Skew).UTC().Format(http.TimeFormat))
	}
	if call.fault.standsBefore() {
		call.fault.strike(w, r)
		return
	}
	if call.decision.Granted {
		defer call.done() // also if a style panics
	}
	for _, style := range v.Styles {
		style(w.Header(), call.decision)
	}
	if !call.decision.Granted {
		v.refuse(w)
		return
	}
	pause(r.Context(), v.service())
	call.fault.answer(w, r, v.handler())
}

func (v *Vendor) refuse(w http.ResponseWriter) {
	status, body := v.RefusalStatus, v.RefusalBody
	if status == 0 {
		status = http.StatusTooManyRequests
	}
	if body == "" {
		body = "too many requests\n"
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
}

func (v *Vendor) handler() http.Handler {
	if v.Handler != nil {
		return v.Handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "ok\n")
	})
}

// service returns how long the next answer takes.
func (v *Vendor) service() time.Duration {
	if v.Spread <= 0 {
		return v.Service
	}
	return v.Service + rand.N(v.Spread)
}

// Fastest returns the shortest time in which the limits grant n calls, counted from the vendor's
// start. A bound on calls in flight adds nothing to it. The result is negative if a limit could
// never grant them.
func (v *Vendor) Fastest(calls int) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.begin()
	var now time.Duration
	meters := v.newMeters(nil)
	for range calls {
		for wait := longest(meters, now); wait != 0; wait = longest(meters, now) {
			if wait < 0 {
				return wait
			}
			now += wait
		}
		for _, m := range meters {
			m.spend(now, 1)
			m.done(1)
		}
	}
	return now
}

// longest returns the longest wait of one permit at any of the meters. It is
// negative if a meter can never grant it.
func longest(meters []meter, now time.Duration) time.Duration {
	var most time.Duration
	for _, m := range meters {
		wait := m.wait(now, 1)
		if wait < 0 {
			return wait
		}
		most = max(most, wait)
	}
	return most
}

// begin starts the clock. The caller holds the lock.
func (v *Vendor) begin() {
	if v.start.IsZero() {
		v.start = time.Now()
		v.accounts = make(map[string][]meter)
	}
}

// newMeters returns the meters of one account. They take over the counts of the old ones. The
// caller holds the lock.
func (v *Vendor) newMeters(old []meter) []meter {
	meters := make([]meter, len(v.Limits))
	for i, limit := range v.Limits {
		meters[i] = limit.newMeter(v.start.Add(v.Skew))
		if i < len(old) {
			meters[i].resume(old[i])
		}
	}
	return meters
}
