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
type Local struct{}

// Limiter implements [Store].
func (Local) Limiter(_ string, limits ...Limit) (Limiter, error) {
	resolved, err := Resolve(limits...)
	if err != nil {
		return nil, err
	}
	return newSet(resolved, readWall), nil
}

func readWall() Instant { return InstantOf(time.Now()) }
