package hostlocal

import "github.com/weirgo/weir/throttle"

// NewAt returns a limiter in a directory, whose instants are those of its wall clock, which tests
// give.
func NewAt(dir, key string, limits ...throttle.Limit) throttle.Limiter {
	s := &Store{Dir: dir, clock: func(now throttle.Instant) throttle.Instant { return now }}
	l, err := s.Limiter(key, limits...)
	if err != nil {
		panic(err)
	}
	return l
}

// SetClock sets the wall clock of a store.
func SetClock(s *Store, clock func(throttle.Instant) throttle.Instant) { s.clock = clock }

// WriteValue writes a value to a lane's file, as the newest one.
func WriteValue(path string, value []byte) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	s := slots{file: f}
	if _, _, err := s.read(); err != nil {
		return err
	}
	s.head.number += 1000 // others write too
	return s.write(append(make([]byte, headSize), value...), s.head.events)
}
