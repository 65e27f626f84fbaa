package peerbench

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Adaptive returns a client as the AWS SDKs have it in adaptive mode: a token bucket
// whose rate follows CUBIC from the answers that throttle, below three attempts with
// full jitter. The constants are botocore's: botocore/retries/throttling.py, adaptive.py
// and bucket.py at 40454ea, and three attempts with delays of up to 20 s as in
// standard.py.
func Adaptive(base http.RoundTripper) http.RoundTripper { return &adaptive{base: base} }

const (
	adaptiveAttempts  = 3
	adaptiveBackoff   = 20 * time.Second // longest delay of an attempt
	adaptiveBeta      = 0.7              // share of the rate that an error leaves
	adaptiveScale     = 0.4              // requests per second, per cubic second
	adaptiveSmoothing = 0.8              // weight of the last bin of the measured rate
	adaptiveBin       = 0.5              // seconds of a bin
	adaptiveLeastRate = 0.5              // requests per second
	adaptiveLeastSize = 1                // tokens
)

type adaptive struct {
	base http.RoundTripper

	mu      sync.Mutex
	limited bool // an answer has throttled
	began   time.Time

	tokens, size, fill float64 // of the bucket
	filled             float64 // when, in seconds since it began

	count, bin, measured float64 // of the requests sent

	most, lost float64 // rate at the last error, and when that was
}

// RoundTrip implements [http.RoundTripper].
func (a *adaptive) RoundTrip(req *http.Request) (*http.Response, error) {
	for n := 0; ; n++ {
		if err := a.acquire(req.Context()); err != nil {
			return nil, err
		}
		resp, err := a.base.RoundTrip(req)
		throttled := err == nil && (resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable)
		a.heard(throttled)
		if err != nil || !throttled || n+1 >= adaptiveAttempts {
			return resp, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		delay := time.Duration(rand.Float64() * math.Exp2(float64(n)) * float64(time.Second))
		if err := Sleep(req.Context(), min(delay, adaptiveBackoff)); err != nil {
			return nil, err
		}
	}
}

// acquire waits for a token once the client is limited.
func (a *adaptive) acquire(ctx context.Context) error {
	for {
		a.mu.Lock()
		now := a.now()
		if !a.limited {
			a.mu.Unlock()
			return nil
		}
		a.refill(now)
		if a.tokens >= 1 {
			a.tokens--
			a.mu.Unlock()
			return nil
		}
		wait := time.Duration((1 - a.tokens) / a.fill * float64(time.Second))
		a.mu.Unlock()
		// Waiting callers are woken when the rate changes, and check again here.
		if err := Sleep(ctx, min(wait, 20*time.Millisecond)); err != nil {
			return err
		}
	}
}

// heard applies an answer.
func (a *adaptive) heard(throttled bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.measure(now)
	rate := 0.0
	if throttled {
		a.most = a.measured
		if a.limited {
			a.most = min(a.measured, a.fill)
		}
		a.lost, a.limited = now, true
		rate = a.most * adaptiveBeta
	} else {
		k := math.Cbrt(a.most * (1 - adaptiveBeta) / adaptiveScale)
		since := now - a.lost - k
		rate = adaptiveScale*since*since*since + a.most
	}
	a.refill(now)
	a.fill = max(min(rate, 2*a.measured), adaptiveLeastRate)
	a.size = max(a.fill, adaptiveLeastSize)
	a.tokens = min(a.tokens, a.size)
}

// measure counts a request in the measured rate.
func (a *adaptive) measure(now float64) {
	a.count++
	if bin := math.Floor(now/adaptiveBin) * adaptiveBin; bin > a.bin {
		rate := a.count / (bin - a.bin)
		a.measured = rate*adaptiveSmoothing + a.measured*(1-adaptiveSmoothing)
		a.count, a.bin = 0, bin
	}
}

func (a *adaptive) refill(now float64) {
	a.tokens = min(a.size, a.tokens+(now-a.filled)*a.fill)
	a.filled = now
}

// now returns the seconds since the first request.
func (a *adaptive) now() float64 {
	if a.began.IsZero() {
		a.began = time.Now()
	}
	return time.Since(a.began).Seconds()
}

// Sleep waits, and returns the context's error if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
