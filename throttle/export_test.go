package throttle

// NewAt returns the limiter that Local makes, but instants are its wall clock:
// tests give them.
func NewAt(limits ...Limit) Limiter {
	return NewWall(func(now Instant) Instant { return now }, limits...)
}

// NewLocked is NewAt without the lock-free form.
func NewLocked(limits ...Limit) Limiter {
	s := NewAt(limits...).(*set)
	s.settled = true
	return s
}

// NewWall is NewAt with a wall clock of its own.
func NewWall(wall func(Instant) Instant, limits ...Limit) Limiter {
	l, err := Local{Wall: wall}.Limiter("", limits...)
	if err != nil {
		panic(err)
	}
	return l
}

// LockFree reports whether the next Take may decide without the lock.
func LockFree(l Limiter) bool { return l.(*set).quick.Load() != nil }
