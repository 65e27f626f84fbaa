package main

import (
	"net/http"

	"github.com/weirgo/weir/internal/testserver"
)

// A vendor is the embedded API. It enforces each account's tier, and the limit of their
// organisation on all of them.
type vendor struct {
	*testserver.Server
	whole *testserver.Vendor            // limits all accounts, and passes calls on
	tiers map[string]*testserver.Vendor // by Authorization
}

func openVendor() (*vendor, error) {
	v := &vendor{tiers: map[string]*testserver.Vendor{}}
	for _, a := range accounts {
		v.tiers["Bearer "+a.apiKey] = &testserver.Vendor{
			Limits: []testserver.Limit{testserver.TokenBucket(a.tier.Permits, a.tier.Per, a.tier.Burst)},
			Styles: []testserver.Style{testserver.RetryAfterSeconds},
		}
	}
	v.whole = &testserver.Vendor{
		Limits:   []testserver.Limit{testserver.TokenBucket(organisation.Permits, organisation.Per, organisation.Burst)},
		Styles:   []testserver.Style{testserver.RetryAfterSeconds, testserver.XRateLimitDelta},
		IDHeader: "Authorization",
		Handler:  http.HandlerFunc(v.serve),
	}
	var err error
	v.Server, err = testserver.Listen(v.whole)
	return v, err
}

// serve answers a call that the organisation's limit allows.
func (v *vendor) serve(w http.ResponseWriter, r *http.Request) {
	if tier := v.tiers[r.Header.Get("Authorization")]; tier != nil {
		tier.ServeHTTP(w, r)
		return
	}
	http.Error(w, "unknown API key", http.StatusUnauthorized)
}

// refused returns how many requests of the account got a 429, from either limit.
func (v *vendor) refused(a account) int {
	all := v.whole.Arrivals().Filter(func(r testserver.Arrival) bool { return r.ID == "Bearer "+a.apiKey })
	return all.Count(http.StatusTooManyRequests) + v.tiers["Bearer "+a.apiKey].Arrivals().Count(http.StatusTooManyRequests)
}
