package main

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weirgo/weir/internal/peerbench"
	"github.com/weirgo/weir/internal/testserver"
)

// A result is the outcome of calling one vendor.
type result struct {
	used    float64 // served calls as a share of the rate
	later   float64 // the same of the second half
	served  int
	refused int
	early   int // departures before a reported time
	p99     time.Duration
}

// share returns the refused calls as a share of all calls at the vendor.
func (r result) share() float64 { return float64(r.refused) / float64(max(1, r.served+r.refused)) }

// call calls the vendor until the context ends.
func (b bench) call(ctx context.Context, v vendor, transport http.RoundTripper, watch *watch) (result, error) {
	met := &testserver.Vendor{Limits: v.limits, Styles: says[v.word], Service: service}
	server, err := testserver.Listen(met)
	if err != nil {
		return result{}, err
	}
	defer server.Close()
	lane := watch.add(server)
	client := &http.Client{Transport: transport}
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	met.Start()
	for range b.workers {
		all.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				if peerbench.Succeeds(ctx, client, server.URL) {
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	arrivals := met.Arrivals()
	half := arrivals.Granted().Filter(func(a testserver.Arrival) bool { return a.At > b.length/2 })
	could := v.rate() * b.length.Seconds()
	r := result{
		used:    float64(len(took)) / could,
		later:   float64(len(half)) / (could / 2),
		served:  len(took),
		refused: arrivals.Count(http.StatusTooManyRequests),
		early:   lane.early(),
	}
	if slices.Sort(took); len(took) > 0 {
		r.p99 = took[len(took)*99/100]
	}
	return r, nil
}
