package peerbench

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Work is a number of calls by a number of workers; each makes the next one when it has its answer.
type Work struct {
	Calls, Workers int
	Within         time.Duration // calls that do not end within this fail; zero: no bound
}

// A Done is the outcome of Work.
type Done struct {
	Wall   time.Duration
	Failed int             // calls that did not end with 200
	Took   []time.Duration // by each call, the shortest first
}

// Through sends the calls through a round tripper. It closes that if it is an
// [io.Closer].
func (w Work) Through(transport http.RoundTripper, url string) Done {
	if c, ok := transport.(io.Closer); ok {
		defer c.Close()
	}
	ctx := context.Background()
	if w.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.Within)
		defer cancel()
	}
	client := &http.Client{Transport: transport}
	done := Done{Took: make([]time.Duration, w.Calls)}
	var calls, failed atomic.Int64
	var all sync.WaitGroup
	started := time.Now()
	for range w.Workers {
		all.Go(func() {
			for i := calls.Add(1) - 1; i < int64(w.Calls); i = calls.Add(1) - 1 {
				began := time.Now()
				if !Succeeds(ctx, client, url) {
					failed.Add(1)
				}
				done.Took[i] = time.Since(began)
			}
		})
	}
	all.Wait()
	done.Wall, done.Failed = time.Since(started), int(failed.Load())
	slices.Sort(done.Took)
	return done
}

// Succeeds reports whether a GET ends with 200 and the whole of its body.
func Succeeds(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

// Median returns the median of one figure of all results; for an even number the upper one.
func Median[R any, T int | float64 | time.Duration](all []R, of func(R) T) T {
	values := make([]T, len(all))
	for i, r := range all {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
