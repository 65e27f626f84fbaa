package main

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// vendorService is how long the vendor takes to answer, as an API nearby does.
const vendorService = 10 * time.Millisecond

// A vendor is the embedded API. It enforces its own limit and records all calls.
type vendor struct {
	*testserver.Server
	record *testserver.Vendor
	began  time.Duration // the run, by the record's clock
	armed  atomic.Bool   // the next call is refused
	fired  atomic.Int64  // calls refused that way
}

// pauseAsked is the wait, in seconds, in a refusal of the schedule.
const pauseAsked = 1

func openVendor(permits int, per time.Duration, burst int) (*vendor, error) {
	v := new(vendor)
	v.record = &testserver.Vendor{
		Limits:   []testserver.Limit{testserver.TokenBucket(permits, per, burst)},
		Styles:   []testserver.Style{testserver.RetryAfterSeconds, testserver.RateLimit},
		Service:  vendorService,
		IDHeader: replicaHeader,
		Faults: []testserver.Fault{{
			Match:  v.disarm,
			Status: http.StatusTooManyRequests,
			Header: http.Header{"Retry-After": {strconv.Itoa(pauseAsked)}},
		}},
	}
	var err error
	v.Server, err = testserver.Listen(v.record)
	return v, err
}

// begin makes now the zero of the record.
func (v *vendor) begin() { v.began = time.Since(v.record.Start()) }

// refuse makes the next call answered with 429, whatever the limit.
func (v *vendor) refuse() { v.armed.Store(true) }

func (v *vendor) disarm(*http.Request) bool {
	if !v.armed.CompareAndSwap(true, false) {
		return false
	}
	v.fired.Add(1)
	return true
}

// arrivals returns the arrivals of the run so far, with instants since its beginning.
func (v *vendor) arrivals() testserver.Arrivals {
	all := v.record.Arrivals()
	in := all[:0]
	for _, a := range all {
		if a.At -= v.began; a.At >= 0 {
			in = append(in, a)
		}
	}
	return in
}

// replicaOf returns the number of the replica that made the call.
func replicaOf(a testserver.Arrival) int {
	n, _ := strconv.Atoi(a.ID) // our own
	return n
}
