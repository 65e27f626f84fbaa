package testserver

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// A Tap is a round tripper that records what leaves and what comes back. Put it
// below the client that is judged: it knows nothing but the wire. Set the fields
// before the first request. A Tap is safe for concurrent use.
type Tap struct {
	Base http.RoundTripper // required

	mu    sync.Mutex
	clock int // events so far
	trips []Trip
}

// A Trip is one request as the client sent it. Departures and landings are
// numbered together from 1, in their order.
type Trip struct {
	Departed, Landed int       // numbers of the events; Landed is zero while it is under way
	Left, Back       time.Time // their instants
	Status           int       // zero: no response
	Remaining        int       // calls left, as the response reports
	Reported         bool      // the response reports Remaining
}

// refused reports whether the trip has come back with a 429.
func (t Trip) refused() bool { return t.Status == http.StatusTooManyRequests }

// RoundTrip implements [http.RoundTripper].
func (t *Tap) RoundTrip(req *http.Request) (*http.Response, error) {
	n := t.depart()
	resp, err := t.Base.RoundTrip(req)
	t.land(n, resp)
	return resp, err
}

func (t *Tap) depart() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clock++
	t.trips = append(t.trips, Trip{Departed: t.clock, Left: time.Now()})
	return len(t.trips) - 1
}

func (t *Tap) land(n int, resp *http.Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clock++
	trip := &t.trips[n]
	trip.Landed, trip.Back = t.clock, time.Now()
	if resp != nil {
		trip.Status = resp.StatusCode
		trip.Remaining, trip.Reported = Remaining(resp.Header)
	}
}

// Trips returns a copy of the record so far, in the order of departure.
func (t *Tap) Trips() []Trip {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.trips)
}
