package hostlocal

import "github.com/weirgo/weir/throttle"

// NewAt returns a limiter in a directory, whose instants are its wall clock: tests give
// them.
func NewAt(dir, key string, limits ...throttle.Limit) throttle.Limiter {
	s := &Store{Dir: dir, clock: func(now throttle.Instant) throttle.Instant { return now }}
	l, err := s.Limiter(key, limits...)
	if err != nil {
		panic(err)
	}
	return l
}
