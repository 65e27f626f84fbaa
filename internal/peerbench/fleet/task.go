package main

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A task is a replica's work: calls to a vendor or, without one, waits.
type task struct {
	Who      string
	Redis    string // its address
	Quota    quota
	Replicas int // that share the quota
	Workers  int // of each store

	Vendor string // its URL
	Calls  int    // zero: as many as possible for the duration

	Stores int // clients and stores in this process, each a replica by itself
	Lasts  time.Duration
}

// A span is from a worker's request to its answer, by the wall clock, which the processes share, in
// nanoseconds since 1970.
type span struct{ Asked, Took int64 }

func (s span) end() int64 { return s.Asked + s.Took }

// A report is a replica's outcome.
type report struct {
	Spans  [][]span // of each store; calls are all in the first
	Failed int
	Lost   int // store calls without an answer
}

// prepare returns what to do, and what to close after it.
func (t *task) prepare() (run func() report, end io.Closer, err error) {
	if t.Vendor == "" {
		return t.prepareWaits()
	}
	c, err := sending(t, &http.Transport{MaxIdleConnsPerHost: 1024})
	if err != nil {
		return nil, nil, err
	}
	if t.Calls == 0 {
		return func() report { return t.keepCalling(c) }, c, nil
	}
	return func() report { return t.call(c) }, c, nil
}

// call makes the calls, as fast as they go.
func (t *task) call(c *contender) report {
	client := &http.Client{Transport: c.transport}
	spans := make([]span, t.Calls)
	var calls, failed atomic.Int64
	var all sync.WaitGroup
	for range t.Workers {
		all.Go(func() {
			for i := calls.Add(1) - 1; i < int64(t.Calls); i = calls.Add(1) - 1 {
				began := time.Now()
				if !succeeds(client, t.Vendor) {
					failed.Add(1)
				}
				spans[i] = span{began.UnixNano(), int64(time.Since(began))}
			}
		})
	}
	all.Wait()
	return report{[][]span{spans}, int(failed.Load()), c.lost()}
}

// keepCalling makes calls for as long as the task lasts.
func (t *task) keepCalling(c *contender) report {
	client := &http.Client{Transport: c.transport}
	over := time.Now().Add(t.Lasts)
	var failed atomic.Int64
	var all sync.WaitGroup
	for range t.Workers {
		all.Go(func() {
			for time.Now().Before(over) {
				if !succeeds(client, t.Vendor) {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	return report{Failed: int(failed.Load()), Lost: c.lost()}
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

func (t *task) prepareWaits() (run func() report, end io.Closer, err error) {
	all := make([]*contender, t.Stores)
	var ends closers
	for i := range all {
		rdb := connect(t.Redis)
		if all[i], err = waiting(t.Who, rdb, t.Quota); err != nil {
			return nil, nil, err
		}
		ends = append(ends, all[i], rdb)
	}
	return func() report { return t.wait(all) }, ends, nil
}

// wait makes the workers wait, one permit after another.
func (t *task) wait(stores []*contender) report {
	ctx, cancel := context.WithCancel(context.Background())
	// Not a deadline: no call must be rejected for it.
	stop := time.AfterFunc(t.Lasts, cancel)
	defer stop.Stop()
	rep := report{Spans: make([][]span, len(stores))}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, c := range stores {
		for range t.Workers {
			all.Go(func() {
				spans, failed := c.wait.again(ctx)
				mu.Lock()
				defer mu.Unlock()
				rep.Spans[i] = append(rep.Spans[i], spans...)
				rep.Failed += failed
			})
		}
	}
	all.Wait()
	for _, c := range stores {
		rep.Lost += c.lost()
	}
	return rep
}

// again waits until the context ends.
func (w wait) again(ctx context.Context) (spans []span, failed int) {
	for ctx.Err() == nil {
		began := time.Now()
		switch err := w(ctx); {
		case err == nil:
			spans = append(spans, span{began.UnixNano(), int64(time.Since(began))})
		case ctx.Err() == nil:
			failed++
		}
	}
	return spans, failed
}
