package testserver

import (
	"net/http"
	"time"
)

// A call is one request on its way through a vendor.
type call struct {
	vendor   *Vendor
	index    int // in the vendor's arrivals
	key      string
	cost     int
	fault    *Fault   // the fault that hits it; nil: none
	decision Decision // zero if a fault comes before the limits
}

// arrive records a request and decides on it under one lock. So the record and the decisions have
// the same order and the same instants.
func (v *Vendor) arrive(r *http.Request) *call {
	a := v.describe(r)
	faults := v.faultsFor(r)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.begin()
	a.Wall = time.Now()
	a.At = a.Wall.Sub(v.start)
	c := &call{vendor: v, index: len(v.arrivals), key: a.Key, cost: a.Cost}
	for _, f := range faults {
		if f.covers(len(v.arrivals)+1, a.At) {
			c.fault = f
			break
		}
	}
	if !c.fault.standsBefore() {
		c.decision, a.Over = v.decide(a)
		a.Granted = c.decision.Granted
	}
	v.arrivals = append(v.arrivals, a)
	return c
}

// describe returns the record of a request before the decision.
func (v *Vendor) describe(r *http.Request) Arrival {
	a := Arrival{Method: r.Method, Path: r.URL.Path, Conn: wireOf(r).number(), Cost: 1}
	if v.Key != nil {
		a.Key = v.Key(r)
	}
	if v.Cost != nil {
		a.Cost = v.Cost(r)
	}
	id := v.IDHeader
	if id == "" {
		id = DefaultIDHeader
	}
	a.ID = r.Header.Get(id)
	return a
}

// faultsFor returns the faults that match the request. It is called without the lock, because Match
// is the user's function.
func (v *Vendor) faultsFor(r *http.Request) []*Fault {
	v.mu.Lock()
	faults := v.Faults
	v.mu.Unlock()
	var met []*Fault
	for i := range faults {
		if faults[i].matches(r) {
			met = append(met, &faults[i])
		}
	}
	return met
}

// decide asks all limits, and spends from each if all of them grant. It also
// returns the first limit that does not. The caller holds the lock.
func (v *Vendor) decide(a Arrival) (d Decision, over *Limit) {
	meters, ok := v.accounts[a.Key]
	if !ok {
		meters = v.newMeters(nil)
		v.accounts[a.Key] = meters
	}
	d = Decision{Granted: true, Now: v.start.Add(v.Skew + a.At)}
	waits := make([]time.Duration, len(meters))
	for i, m := range meters {
		waits[i] = m.wait(a.At, v.Limits[i].cost(a.Cost))
		if waits[i] != 0 && d.Granted {
			d.Granted, over = false, &v.Limits[i]
		}
		d.Wait = max(d.Wait, waits[i])
	}
	for i, m := range meters {
		if d.Granted {
			m.spend(a.At, v.Limits[i].cost(a.Cost))
		}
		standing := m.standing(a.At)
		standing.Wait = max(0, waits[i])
		d.Standings = append(d.Standings, standing)
	}
	return d, over
}

// done gives back what a granted request held while it was answered.
func (c *call) done() {
	c.vendor.mu.Lock()
	defer c.vendor.mu.Unlock()
	for i, m := range c.vendor.accounts[c.key] {
		m.done(c.vendor.Limits[i].cost(c.cost))
	}
}
