package replay

import (
	"fmt"
	"io"
	"sync/atomic"
)

// A rewinder is a reader that can begin anew.
type rewinder interface {
	io.Reader
	// rewind fails if what was read is lost.
	rewind() error
	// rewindable reports whether rewind would succeed, as far as is known.
	rewindable() bool
}

// A seek is a body that can seek.
type seek struct {
	io.ReadSeeker
	start int64
}

// newSeek returns false if body cannot seek, such as an *os.File of a pipe.
func newSeek(body io.Reader) (*seek, bool) {
	s, ok := body.(io.ReadSeeker)
	if !ok {
		return nil, false
	}
	start, err := s.Seek(0, io.SeekCurrent)
	return &seek{s, start}, err == nil
}

func (s *seek) rewindable() bool { return true }

func (s *seek) rewind() error {
	if _, err := s.Seek(s.start, io.SeekStart); err != nil {
		return fmt.Errorf("body cannot be rewound: %w", err)
	}
	return nil
}

// A spool keeps what was read of a body, within a bound, and reads it anew
// before the rest. It reads no more ahead than its reader does, so that a body
// which is written while it is sent stays one.
type spool struct {
	from  io.Reader
	bound int64
	kept  []byte
	at    int   // what of kept was read since the last rewind
	err   error // how from ended
	lost  atomic.Bool
}

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

// keep appends p, or drops everything if that is more than the bound.
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

func (s *spool) rewind() error {
	if s.lost.Load() {
		return fmt.Errorf("body is longer than the %d bytes kept of it", s.bound)
	}
	s.at = 0
	return nil
}
