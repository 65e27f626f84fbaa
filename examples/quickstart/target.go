package main

import (
	"net/http"
	"time"

	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// vendorLimit is what the embedded vendor accepts.
var vendorLimit = throttle.TokenBucket(50, time.Second, 10)

// vendorService is how long the embedded vendor takes to answer, as a nearby API does. A faster one
// is harder on the plain client.
const vendorService = 30 * time.Millisecond

// A target is the server of one run's calls.
type target struct {
	url      string
	base     http.RoundTripper
	service  time.Duration  // duration of an answer; zero: unknown
	limit    throttle.Limit // the vendor's; for a user's endpoint Weir's
	arrivals func() []arrival
	close    func()
}

// open returns a target with a fresh record and limit.
func open(o options) (target, error) {
	if o.url != "" {
		return endpoint(o), nil
	}
	return embedded()
}

func embedded() (target, error) {
	vendor := &testserver.Vendor{
		Limits:  []testserver.Limit{testserver.TokenBucket(vendorLimit.Permits, vendorLimit.Per, vendorLimit.Burst)},
		Styles:  []testserver.Style{testserver.RetryAfterSeconds, testserver.RateLimit},
		Service: vendorService,
	}
	server, err := testserver.Listen(vendor)
	if err != nil {
		return target{}, err
	}
	return target{
		url:      server.URL,
		base:     server.Transport(),
		service:  vendorService,
		limit:    vendorLimit,
		arrivals: func() []arrival { return fromVendor(vendor.Arrivals()) },
		close:    server.Close,
	}, nil
}

func fromVendor(record testserver.Arrivals) []arrival {
	as := make([]arrival, len(record))
	for i, a := range record {
		as[i] = arrival{at: a.At, refused: !a.Granted}
	}
	return as
}

func endpoint(o options) target {
	w := &wire{base: http.DefaultTransport, start: time.Now()}
	return target{
		url:      o.url,
		base:     w,
		limit:    o.limit,
		arrivals: w.arrivals,
		close:    w.CloseIdleConnections,
	}
}
