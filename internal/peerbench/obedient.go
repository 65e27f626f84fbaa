package peerbench

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Obedient returns the client that careful programmers write themselves. After a 429 it waits for
// Retry-After, or for a second if that is absent, and at random for up to as long again. It tries
// until the call's context ends.
func Obedient(base http.RoundTripper) http.RoundTripper { return obedient{base} }

type obedient struct{ base http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (o obedient) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		resp, err := o.base.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests {
			return resp, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		wait := time.Second
		if s, err := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64); err == nil && s > 0 {
			wait = time.Duration(s * float64(time.Second))
		}
		if err := Sleep(req.Context(), wait+rand.N(wait)); err != nil {
			return nil, err
		}
	}
}
