package lane

import (
	"github.com/weirgo/weir/throttle"
)

// flightBits is the number of bits in Course.count for the calls in flight.
const flightBits = 24

// A flight is a call in flight.
type flight struct {
	ordinal int64 // number of its departure
	given   int64 // the ordinal of the store, in a fleet; zero: it gave none
	flying  int   // calls in flight when it departed, itself included
	at      throttle.Instant
}

// A Seen is the state of the course when a call departed. Zero belongs to a
// call that did not.
type Seen uint64

// Look returns the state of the course. Each call looks when it departs.
func (c *Course) Look() Seen { return Seen(c.count.Load()) }

func (s Seen) ordinal() int64 { return int64(s >> flightBits) }

func (s Seen) flying() int { return int(s & (1<<flightBits - 1)) }

// full reports whether as many calls are in flight as may be.
func (c *Course) full() bool {
	most := c.most.Load()
	return most > 0 && int64(c.Look().flying()) >= most
}

// depart counts one more call in flight. It returns false if as many are in
// flight as may be.
func (c *Course) depart(now throttle.Instant) bool {
	for {
		v := c.count.Load()
		most := c.most.Load()
		if most > 0 && int64(Seen(v).flying()) >= most {
			return false
		}
		if c.count.CompareAndSwap(v, v+1<<flightBits+1) {
			if most > 0 && Seen(v).flying() == 0 {
				c.news.Store(int64(now))
			}
			return true
		}
	}
}

// Refund takes back a departure that did not take place.
func (c *Course) Refund(now, at throttle.Instant, r throttle.Request) {
	if r.ID == 0 {
		return
	}
	c.land()
	if !c.steers.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flights, r.ID)
	if c.pace != nil {
		c.pace.Refund(now, at, throttle.Request{N: 1, Since: r.Since})
	}
}

// land counts one call fewer in flight.
func (c *Course) land() {
	for {
		v := c.count.Load()
		if Seen(v).flying() == 0 || c.count.CompareAndSwap(v, v-1) {
			return
		}
	}
}

// down counts a call that departed as no longer in flight.
func (c *Course) down(now throttle.Instant, a *Answer) {
	if a.Seen != 0 {
		c.land()
		c.freed.Store(int64(now))
	}
}
