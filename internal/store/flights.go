package store

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// A FlightStore is a [throttle.Store] that also bounds how many calls of a lane are in
// flight in all processes together. It is found by type assertion.
type FlightStore interface {
	// Flights returns the calls of a key that this process may have in flight, as a
	// part of the most that all processes may have, up to [MostFlights]. The error says why there
	// can be none.
	Flights(key string, most int) (Flights, error)
}

// MostFlights is any number of calls in flight: the store is not asked for places, unless another
// bound is learned.
const MostFlights = 1 << 30

// Flights are the calls in flight of one lane in one process, bounded together with
// those of other processes. Their methods never sleep and do no I/O. They are safe
// for concurrent use.
type Flights interface {
	// Room returns how many more calls may depart now. The error means that no call may depart until
	// a lost store is back, or that the store is closed.
	Room() (n int, err error)

	// Turn returns for how long this process keeps its places although others need them; zero: it has some
	// for good, nobody else needs them, or its turn is over.
	Turn() time.Duration

	// Board counts one more call in flight, and reports whether it may depart.
	Board() bool

	// Land counts one call fewer in flight, and reports whether a full lane has room again.
	Land() (held bool)

	// Await receives the number of callers in line whenever it changes. It may start one call in
	// the background for them.
	Await(n int)

	// Notify registers wake, which is called if there may be more room than before.
	// It is called on a goroutine of its own, or on a timer's, and never from inside
	// another method. Only the last wake that was registered is called.
	Notify(wake func())

	// Bound bounds the calls of all processes also by what they have learned together, and last at an
	// instant of the store's clock; zero: no such bound. The bound that was learned last is in force.
	Bound(most int, learned throttle.Instant)

	// Watch registers what receives the calls to the store from now on, as
	// [Limiter].Watch does.
	Watch(w Watch)

	// State returns the state as the store returned it last.
	State() throttle.FlightState

	// Close gives back unused slots. Nothing departs afterwards. It does not wait, and calling it
	// again does nothing.
	Close() error
}
