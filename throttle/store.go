package throttle

import "time"

// A Store makes limiters. Stores are safe for concurrent use.
type Store interface {
	// Limiter returns a limiter that enforces all of the limits together under a
	// key. Without limits it grants everything, except during pauses. The error
	// says which limits do not validate, alone or together.
	Limiter(key string, limits ...Limit) (Limiter, error)
}

// Local is the store of this process. The zero value is ready to use. Each
// limiter that it makes has a state of its own, whole at first, even if it made
// one for the same key before. Its limiters can be stored: they implement
// [encoding.BinaryAppender] and [encoding.BinaryUnmarshaler].
type Local struct {
	// Wall reads the wall clock at the instant now, for windows that are aligned
	// to it. It must be safe for concurrent use. A simulation, whose instants are
	// its wall clock, returns now. Nil: time.Now.
	Wall func(now Instant) Instant
}

// Limiter implements [Store]. The key has no effect.
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

// readWall reads the wall clock.
func readWall(Instant) Instant { return InstantOf(time.Now()) }
