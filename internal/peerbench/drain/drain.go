package main

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/weirgo/weir/internal/peerbench"
	"github.com/weirgo/weir/internal/testserver"
)

// A drain is the work: a number of calls by a number of workers to a vendor.
type drain struct {
	calls, workers          int
	vendorRate, vendorBurst int
	service                 time.Duration
	says                    []testserver.Style
}

// A result is the outcome of one run.
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

// run sends the calls to a new vendor.
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
	done := peerbench.Work{Calls: d.calls, Workers: d.workers}.Through(wrap(server.Transport()), server.URL)
	return result{
		wall:    done.Wall,
		refused: vendor.Arrivals().Count(http.StatusTooManyRequests),
		failed:  done.Failed,
		p50:     done.Took[d.calls/2],
		p99:     done.Took[d.calls*99/100],
	}, nil
}

// compare runs the contenders in turn, one run each at a time, so that other load of the machine
// affects all of them. It prints each run and then the medians.
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

// medians returns the median of each figure separately.
func medians(all []result) result {
	return result{
		wall:    peerbench.Median(all, func(r result) time.Duration { return r.wall }),
		refused: peerbench.Median(all, func(r result) int { return r.refused }),
		failed:  peerbench.Median(all, func(r result) int { return r.failed }),
		p50:     peerbench.Median(all, func(r result) time.Duration { return r.p50 }),
		p99:     peerbench.Median(all, func(r result) time.Duration { return r.p99 }),
	}
}
