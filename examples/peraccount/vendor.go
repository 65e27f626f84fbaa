package main

import (
	"net/http"

	"github.com/weirgo/weir/internal/testserver"
)

// A vendor is the embedded API. It holds each account to its tier.
type vendor struct {
	*testserver.Server
	tiers map[string]*testserver.Vendor // by what Authorization says
}

func openVendor() (*vendor, error) {
	v := &vendor{tiers: map[string]*testserver.Vendor{}}
	for _, a := range accounts {
		v.tiers["Bearer "+a.apiKey] = &testserver.Vendor{
			Limits: []testserver.Limit{testserver.TokenBucket(a.tier.Permits, a.tier.Per, a.tier.Burst)},
			Styles: []testserver.Style{testserver.RetryAfterSeconds, testserver.XRateLimitDelta},
		}
	}
	var err error
	v.Server, err = testserver.Listen(v)
	return v, err
}

// ServeHTTP implements http.Handler.
func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if tier := v.tiers[r.Header.Get("Authorization")]; tier != nil {
		tier.ServeHTTP(w, r)
		return
	}
	http.Error(w, "unknown API key", http.StatusUnauthorized)
}

// refused returns how many requests of the account got a 429.
func (v *vendor) refused(a account) int {
	return v.tiers["Bearer "+a.apiKey].Arrivals().Count(http.StatusTooManyRequests)
}
