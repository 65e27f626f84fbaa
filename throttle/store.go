package throttle

import "time"

// A Store makes the limiter that enforces limits, all of them at once, under
// one key. With no limits the limiter grants everything but during pauses.
// Stores are safe for concurrent use.
type Store interface {
	// Limiter returns an error for limits that do not validate, alone or
	// together.
	Limiter(key string, limits ...Limit) (Limiter, error)
}

// Local is the store of this process. The zero value works. Every limiter it
// makes has a state of its own, whole at first, also for a key it was asked
// for before.
type Local struct {
	// Wall reads the wall clock at the instant now, for windows that are aligned
	// to it. It must be safe for concurrent use. A simulation, whose instants are
	// its wall clock, returns now. Nil: time.Now.
	Wall func(now Instant) Instant
}

// Limiter implements [Store].
func (l Local) Limiter(_ string, limits ...Limit) (Limiter, error) {
	resolved, err := Resolve(limits...)
	if err != nil {
		return nil, err
	}
	wall := l.Wall
	if wall == nil {
		wall = readWall
	}
	return newSet(resolved, wall), nil
}

func readWall(Instant) Instant { return InstantOf(time.Now()) }
