package main

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// A wire is an http.RoundTripper that records when requests are sent and
// whether they are refused. It is safe for concurrent use.
type wire struct {
	base  http.RoundTripper
	start time.Time

	mu   sync.Mutex
	sent []arrival
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	i := w.record()
	resp, err := w.base.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests {
		w.mu.Lock()
		w.sent[i].refused = true
		w.mu.Unlock()
	}
	return resp, err
}

func (w *wire) record() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, arrival{at: time.Since(w.start)})
	return len(w.sent) - 1
}

func (w *wire) arrivals() []arrival {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

// CloseIdleConnections closes those of the base.
func (w *wire) CloseIdleConnections() {
	if c, ok := w.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
