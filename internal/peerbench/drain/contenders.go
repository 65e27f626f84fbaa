package main

import (
	"fmt"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/peerbench"
	"github.com/weirgo/weir/throttle"
)

// A contender is one way to send the calls, set up as its documentation says.
type contender struct {
	name string
	wrap func(base http.RoundTripper) http.RoundTripper
}

// told is the limit that the contenders are configured with.
type told struct {
	rate, burst int
	peerBurst   int // x/time/rate's: it has no tolerance to make room for
}

// weirs are Weir with the limit and, optionally, unconfigured.
func (k told) weirs(unknown bool) []contender {
	all := []contender{{
		fmt.Sprintf("Weir, %d/s burst %d", k.rate, k.burst),
		func(base http.RoundTripper) http.RoundTripper {
			return &weir.Transport{
				Base:   base,
				Limits: []throttle.Limit{throttle.TokenBucket(k.rate, time.Second, k.burst)},
			}
		},
	}}
	if unknown {
		all = append(all, contender{
			"Weir, nothing configured",
			func(base http.RoundTripper) http.RoundTripper { return &weir.Transport{Base: base} },
		})
	}
	return all
}

// peers are the others. Each attempt of the first, not only each call, waits for its limiter, which
// keeps it near the floor.
func (k told) peers() []contender {
	return []contender{
		{
			fmt.Sprintf("x/time/rate + retryablehttp, %d/s burst %d", k.rate, k.peerBurst),
			func(base http.RoundTripper) http.RoundTripper {
				limiter := rate.NewLimiter(rate.Limit(k.rate), k.peerBurst)
				return peerbench.Retryable(&peerbench.Limited{Limiter: limiter, Base: base})
			},
		},
		{"retryablehttp, limit unknown", peerbench.Retryable},
		{"AWS adaptive mode, limit unknown", peerbench.Adaptive},
		{"failsafehttp, limit unknown", func(base http.RoundTripper) http.RoundTripper { return peerbench.Failsafe(base, nil) }},
	}
}
