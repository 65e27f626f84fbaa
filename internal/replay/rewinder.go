package replay

import (
	"fmt"
	"io"
	"sync/atomic"
)

// A rewinder is a reader that can begin again.
type rewinder interface {
	io.Reader
	// rewind starts again. It fails if the read bytes are lost.
	rewind() error
	// rewindable reports whether rewind would succeed, as far as is known.
	rewindable() bool
}

// A seek is a body that can seek.
type seek struct {
	io.ReadSeeker
	start int64 // its first position
}

// newSeek returns a rewinder of body, from its current position. It returns false if body cannot
// seek, as an *os.File of a pipe cannot.
func newSeek(body io.Reader) (*seek, bool) {
	s, ok := body.(io.ReadSeeker)
	if !ok {
		return nil, false
	}
	start, err := s.Seek(0, io.SeekCurrent)
	return &seek{s, start}, err == nil
}

func (s *seek) rewindable() bool { return true }

// rewind seeks to the first position.
func (s *seek) rewind() error {
	if _, err := s.Seek(s.start, io.SeekStart); err != nil {
		return fmt.Errorf("body cannot be rewound: %w", err)
	}
	return nil
}

// A spool keeps a copy of what was read of a body, up to a bound. After a
// rewind it reads the copy before the rest of the body. It never reads ahead of
// its own reader, so a body that is written while it is sent can still be sent
// that way.
type spool struct {
	from  io.Reader
	bound int64
	kept  []byte
	at    int         // bytes of kept that were read since the last rewind
	err   error       // the error that ended from
	lost  atomic.Bool // more than bound was read, and nothing is kept
}

// Read reads the copy first, and then the body.
func (s *spool) Read(p []byte) (int, error) {
	if s.at < len(s.kept) {
		n := copy(p, s.kept[s.at:])
		s.at += n
		return n, nil
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.from.Read(p)
	s.err = err
	s.keep(p[:n])
	return n, err
}

// keep appends p to the copy, or drops the whole copy if it would exceed the
// bound.
func (s *spool) keep(p []byte) {
	switch {
	case s.lost.Load():
		return
	case int64(len(s.kept))+int64(len(p)) > s.bound:
		s.lost.Store(true)
		s.kept, s.at = nil, 0
		return
	}
	s.kept = append(s.kept, p...)
	s.at = len(s.kept)
}

func (s *spool) rewindable() bool { return !s.lost.Load() }

// rewind begins the copy again.
func (s *spool) rewind() error {
	if s.lost.Load() {
		return fmt.Errorf("body is longer than the %d bytes kept of it", s.bound)
	}
	s.at = 0
	return nil
}
