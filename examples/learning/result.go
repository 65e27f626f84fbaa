package main

import (
	"fmt"
	"math"
	"time"

	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A result is the vendor's view.
type result struct {
	length   time.Duration
	phases   []phase
	arrivals testserver.Arrivals // before length
	failed   int                 // calls
	cause    string              // of the first failure
}

// A phase is a time with one limit of the vendor.
type phase struct {
	limit throttle.Limit
	from  time.Duration // until the next phase
}

// see reads the arrivals so far.
func (r *result) see(vendor *testserver.Vendor) {
	r.length = time.Since(vendor.Start())
	r.arrivals = vendor.Arrivals().Filter(func(a testserver.Arrival) bool { return a.At < r.length })
}

// until returns the end of phase i.
func (r *result) until(i int) time.Duration {
	if i+1 < len(r.phases) {
		return r.phases[i+1].from
	}
	return r.length
}

// could returns how many calls the vendor would have served in phase i: its rate,
// and the burst once.
func (r *result) could(i int) int {
	p := r.phases[i]
	calls := p.limit.PerSecond() * (r.until(i) - p.from).Seconds()
	if i == 0 {
		calls += float64(p.limit.Burst)
	}
	return int(math.Round(calls))
}

// between returns how many calls the vendor served and refused between two times.
func (r *result) between(from, until time.Duration) (served, refused int) {
	for _, a := range r.arrivals {
		switch {
		case a.At < from || a.At >= until:
		case a.Granted:
			served++
		default:
			refused++
		}
	}
	return served, refused
}

// lately describes the last second.
func (r *result) lately() string {
	served, refused := r.between(r.length-time.Second, r.length)
	return fmt.Sprintf("%5.1f s  served %3d/s of %.0f/s  %d 429s",
		r.length.Seconds(), served, r.phases[len(r.phases)-1].limit.PerSecond(), refused)
}
