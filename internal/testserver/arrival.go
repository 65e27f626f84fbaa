package testserver

import (
	"net/http"
	"time"
)

// An Arrival is one request as it reached a [Vendor].
type Arrival struct {
	At      time.Duration // since the vendor's start, by the monotonic clock
	Wall    time.Time     // the same instant by the wall clock
	Method  string
	Path    string
	Key     string // what Vendor.Key returned
	ID      string // the field that Vendor.IDHeader names
	Conn    int    // the server's number of the connection, from 1; zero: unknown
	Cost    int    // permits that it asked for
	Granted bool   // the limits granted it, and its cost was spent
	Status  int    // the status sent; zero: none yet, or never one

	Over     *Limit        // the limit that refused it; nil: no limit did
	Answered time.Duration // since the vendor's start, just before the status was sent; zero: as of Status
	Header   http.Header   // of a refusal, a fault, or an answer of 400 or above; nil: of any other
}

// Arrivals are requests in the order of their arrival.
type Arrivals []Arrival

// Filter returns the arrivals for which keep is true, in the same order.
func (as Arrivals) Filter(keep func(Arrival) bool) Arrivals {
	var kept Arrivals
	for _, a := range as {
		if keep(a) {
			kept = append(kept, a)
		}
	}
	return kept
}

// Granted returns the arrivals that passed the limits.
func (as Arrivals) Granted() Arrivals {
	return as.Filter(func(a Arrival) bool { return a.Granted })
}

// Count returns how many arrivals were answered with the status, and for zero
// how many were not answered.
func (as Arrivals) Count(status int) int { return as.Statuses()[status] }

// Statuses counts the arrivals by the status sent.
func (as Arrivals) Statuses() map[int]int {
	counts := make(map[int]int)
	for _, a := range as {
		counts[a.Status]++
	}
	return counts
}

// Conns returns the number of connections with arrivals.
func (as Arrivals) Conns() int {
	conns := make(map[int]bool)
	for _, a := range as {
		conns[a.Conn] = true
	}
	return len(conns)
}

// Span returns the time from the first arrival to the last.
func (as Arrivals) Span() time.Duration {
	if len(as) == 0 {
		return 0
	}
	return as[len(as)-1].At - as[0].At
}

// MaxIn returns the most arrivals in any half-open window [t, t+w), and zero
// unless w is positive.
func (as Arrivals) MaxIn(w time.Duration) int {
	if w <= 0 {
		return 0
	}
	most, first := 0, 0
	for i, a := range as {
		for a.At-as[first].At >= w {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// MinGap returns the shortest time between two neighbours, and zero if there
// are fewer than two arrivals.
func (as Arrivals) MinGap() time.Duration {
	var least time.Duration
	for i := 1; i < len(as); i++ {
		if gap := as[i].At - as[i-1].At; i == 1 || gap < least {
			least = gap
		}
	}
	return least
}

// BurstAt returns the smallest burst with which a token bucket of permits in each per, full at the
// start, would have granted every arrival. So no window W holds more than permits x W/per + BurstAt
// of them, and with one less some window would hold too many. Costs are not counted.
func (as Arrivals) BurstAt(permits int, per time.Duration) int {
	var owed, most int64 // in parts of 1/per of a permit
	var last time.Duration
	for _, a := range as {
		paid := owed
		if past := int64(a.At - last); past <= owed/int64(permits) {
			paid = past * int64(permits)
		}
		owed += int64(per) - paid
		most = max(most, owed)
		last = a.At
	}
	return int(ceil(most, int64(per)))
}
