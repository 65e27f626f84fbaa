package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// A drain is the work: so many calls, made by so many workers, to a vendor.
type drain struct {
	calls, workers          int
	vendorRate, vendorBurst int
	service                 time.Duration
	says                    []testserver.Style
}

// A result is what one run came to.
type result struct {
	wall     time.Duration
	refused  int // 429s that the vendor sent
	failed   int // calls that did not end with 200
	p50, p99 time.Duration
}

// ideal is how long the vendor's limit alone makes it last.
func (d drain) ideal() time.Duration {
	return time.Duration(max(0, d.calls-d.vendorBurst)) * time.Second / time.Duration(d.vendorRate)
}

// run sends the calls to a vendor of their own.
func (d drain) run(wrap func(http.RoundTripper) http.RoundTripper) (result, error) {
	vendor := &testserver.Vendor{
		Limits:  []testserver.Limit{testserver.TokenBucket(d.vendorRate, time.Second, d.vendorBurst)},
		Styles:  d.says,
		Service: d.service,
	}
	server, err := testserver.Listen(vendor)
	if err != nil {
		return result{}, err
	}
	defer server.Close()
	transport := wrap(server.Transport())
	if c, ok := transport.(io.Closer); ok {
		defer c.Close()
	}
	client := &http.Client{Transport: transport}
	took := make([]time.Duration, d.calls)
	var calls, failed atomic.Int64
	var all sync.WaitGroup
	started := time.Now()
	for range d.workers {
		all.Go(func() {
			for i := calls.Add(1) - 1; i < int64(d.calls); i = calls.Add(1) - 1 {
				began := time.Now()
				if !succeeds(client, server.URL) {
					failed.Add(1)
				}
				took[i] = time.Since(began)
			}
		})
	}
	all.Wait()
	wall := time.Since(started)
	slices.Sort(took)
	return result{
		wall:    wall,
		refused: vendor.Arrivals().Count(http.StatusTooManyRequests),
		failed:  int(failed.Load()),
		p50:     took[len(took)/2],
		p99:     took[len(took)*99/100],
	}, nil
}

func succeeds(client *http.Client, url string) bool {
	resp, err := client.Get(url)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

// compare runs the contenders in turn, one run of each after the other so that
// whatever else the machine does meets all of them, and prints each run and
// then the medians.
func compare(w io.Writer, d drain, all []contender, runs int) error {
	fmt.Fprintf(w, "%d calls, %d workers, a vendor of %d/s burst %d; ideal %.2f s; medians of %d\n\n",
		d.calls, d.workers, d.vendorRate, d.vendorBurst, d.ideal().Seconds(), runs)
	heading(w)
	results := make([][]result, len(all))
	for n := range runs {
		for i, c := range all {
			r, err := d.run(c.wrap)
			if err != nil {
				return err
			}
			results[i] = append(results[i], r)
			row(w, fmt.Sprintf("%s (run %d)", c.name, n+1), r, d.ideal())
		}
	}
	fmt.Fprintln(w)
	heading(w)
	for i, c := range all {
		row(w, c.name, medians(results[i]), d.ideal())
	}
	return nil
}

func heading(w io.Writer) {
	fmt.Fprintln(w, "| | wall s | wall / ideal | 429s | failed | p50 ms | p99 ms |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
}

func row(w io.Writer, name string, r result, ideal time.Duration) {
	fmt.Fprintf(w, "| %s | %.3f | %.3f | %d | %d | %.0f | %.0f |\n", name, r.wall.Seconds(),
		r.wall.Seconds()/ideal.Seconds(), r.refused, r.failed, r.p50.Seconds()*1000, r.p99.Seconds()*1000)
}

// medians returns the median of each figure by itself.
func medians(all []result) result {
	return result{
		wall:    median(all, func(r result) time.Duration { return r.wall }),
		refused: median(all, func(r result) int { return r.refused }),
		failed:  median(all, func(r result) int { return r.failed }),
		p50:     median(all, func(r result) time.Duration { return r.p50 }),
		p99:     median(all, func(r result) time.Duration { return r.p99 }),
	}
}

func median[T int | time.Duration](all []result, of func(result) T) T {
	values := make([]T, len(all))
	for i, r := range all {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
