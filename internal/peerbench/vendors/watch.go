package main

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// hearing is how long it may take until all callers know a reported time.
const hearing = 50 * time.Millisecond

// A watch is the base of the Transport: it sends each call to its server, and counts departures
// before a reported time. It is safe for concurrent use.
type watch struct {
	lanes sync.Map // *watched by host
}

// A watched is the reports of one server.
type watched struct {
	base http.RoundTripper

	mu    sync.Mutex
	told  []told
	count int
}

// A told is a reported time before which a server wants no calls.
type told struct{ known, until time.Time }

// add makes room for a server.
func (w *watch) add(s *testserver.Server) *watched {
	lane := &watched{base: s.Transport()}
	w.lanes.Store(s.URL[len("http://"):], lane)
	return lane
}

// RoundTrip implements http.RoundTripper.
func (w *watch) RoundTrip(req *http.Request) (*http.Response, error) {
	v, ok := w.lanes.Load(req.URL.Host)
	if !ok {
		return nil, http.ErrServerClosed
	}
	lane := v.(*watched)
	lane.departs(time.Now())
	resp, err := lane.base.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests {
		lane.refused(resp.Header, time.Now())
	}
	return resp, err
}

func (l *watched) departs(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.told {
		if now.After(t.known) && now.Before(t.until) {
			l.count++
			break
		}
	}
	for len(l.told) > 0 && l.told[0].until.Before(now) {
		l.told = l.told[1:]
	}
}

// refused records the time in a refusal.
func (l *watched) refused(h http.Header, now time.Time) {
	wait := in(h.Get("Retry-After"), time.Second)
	if ms := in(h.Get("Retry-After-Ms"), time.Millisecond); ms > 0 {
		wait = ms
	}
	if wait <= hearing {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, told{now.Add(hearing), now.Add(wait)})
}

// early returns how many calls departed before a reported time.
func (l *watched) early() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// in reads a whole number of units; zero if it is not a number.
func in(text string, unit time.Duration) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return time.Duration(n) * unit
}
