package main

import (
	"net/http"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// A result is the outcome of a run.
type result struct {
	room      room
	length    time.Duration
	rows      []row // of the replicas
	arrivals  testserver.Arrivals
	scheduled int // calls refused by the schedule
	happened  []span
	tally
}

// A row is the outcome of one replica.
type row struct {
	sent    int
	refused int
	starts  int
	calls   uint64 // to Redis
}

// result is called when the fleet has ended. Arrivals after the run, from calls under way, are left
// out.
func (w *watcher) result(length time.Duration, happened []span) result {
	r := result{
		room:      w.room,
		length:    length,
		scheduled: int(w.vendor.fired.Load()),
		happened:  happened,
		tally:     w.fleet.tally(),
	}
	r.arrivals = w.vendor.arrivals().Filter(func(a testserver.Arrival) bool { return a.At < length })
	for _, replica := range w.fleet.replicas {
		r.rows = append(r.rows, row{starts: replica.starts, calls: replica.tally().calls})
	}
	for _, a := range r.arrivals {
		row := &r.rows[replicaOf(a)-1]
		row.sent++
		if isRefusal(a) {
			row.refused++
		}
	}
	return r
}

func isRefusal(a testserver.Arrival) bool { return a.Status == http.StatusTooManyRequests }

func (r result) refused() int { return r.arrivals.Count(http.StatusTooManyRequests) }
