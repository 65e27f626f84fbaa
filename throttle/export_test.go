package throttle

// NewAt returns the limiter that Local makes, but instants are its wall clock:
// tests give them.
func NewAt(limits ...Limit) Limiter {
	resolved, err := Resolve(limits...)
	if err != nil {
		panic(err)
	}
	return newSet(resolved, nil)
}

// NewLocked is NewAt without the lock-free form.
func NewLocked(limits ...Limit) Limiter {
	s := NewAt(limits...).(*set)
	s.settled = true
	return s
}

// NewWall is NewAt with a wall clock of its own.
func NewWall(wall func() Instant, limits ...Limit) Limiter {
	s := NewAt(limits...).(*set)
	s.wall = wall
	s.install(minInstant, s.limits)
	return s
}

// LockFree reports whether the next Take may decide without the lock.
func LockFree(l Limiter) bool { return l.(*set).quick.Load() != nil }
