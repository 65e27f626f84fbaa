package hostlocal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

// ErrClosed is matched by errors of a store that was closed.
var ErrClosed = errors.New("store is closed")

// ErrUnavailable is matched by the error with which callers are refused while the file
// of their lane cannot be used.
var ErrUnavailable = errors.New("file of the lane cannot be used")

// A Store enforces limits together with every other Store of the same directory and
// namespace, in whatever process of this host and user. Set its fields before first
// use. The zero value is ready. It is a [throttle.Store], and safe for concurrent use.
type Store struct {
	// Dir is the directory of the files. It is made, with mode 0700, if it is missing. It
	// must be on a local disk, and other users must not be able to write to it. Zero means
	// the directory weir in [os.UserCacheDir].
	Dir string

	// Namespace keeps lanes of the same key apart, such as those of two accounts. Zero is a
	// namespace, too.
	Namespace string

	once   sync.Once
	dir    string
	err    error
	mu     sync.Mutex
	open   map[*limiter]struct{} // nil: the store is closed, or has no limiters
	closed bool

	clock func(throttle.Instant) throttle.Instant // of tests; nil: the wall clock
}

var _ throttle.Store = (*Store)(nil)

// Limiter implements [throttle.Store]. It opens the file of the key, and makes it if it is missing.
// The error is for invalid limits, a state too large for its file, or an unusable file or directory.
// It matches [ErrClosed] after Close.
func (s *Store) Limiter(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
	resolved, err := resolve(limits)
	if err != nil {
		return nil, err
	}
	if s.once.Do(s.prepare); s.err != nil {
		return nil, fmt.Errorf("hostlocal: %w", s.err)
	}
	l := newLimiter(s, s.path(key), resolved)
	if err := l.start(); err != nil {
		return nil, fmt.Errorf("hostlocal: lane %q: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = l.end(time.Now()) // it has nothing to write
		return nil, fmt.Errorf("hostlocal: lane %q: %w", key, ErrClosed)
	}
	if s.open == nil {
		s.open = make(map[*limiter]struct{})
	}
	s.open[l] = struct{}{}
	return l, nil
}

const (
	mostLog  = 4_096     // permits of a sliding log, because all departures are in the file
	logEntry = 7         // bytes of a departure, at 4,096 in a hundred days or less
	mostOwn  = 60 * 1000 // bytes of a state without the processes that share it
)

// resolve returns resolved limits, or why they are invalid.
func resolve(limits []throttle.Limit) ([]throttle.Limit, error) {
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, l := range resolved {
		if size += 2*len(l.String()) + 64; l.Algorithm != throttle.AlgorithmSlidingLog {
			continue
		}
		if size += logEntry * l.Permits; l.Permits > mostLog {
			return nil, fmt.Errorf("hostlocal: limit %s: %d permits of a sliding log exceed %d: a sliding window has no such bound", l.Label(), l.Permits, mostLog)
		}
	}
	if size > mostOwn {
		return nil, fmt.Errorf("hostlocal: the state of %d limits takes up to %d bytes, and %d fit its file", len(resolved), size, mostOwn)
	}
	return resolved, nil
}

// prepare finds the directory and sweeps it.
func (s *Store) prepare() {
	dir, err := s.Dir, error(nil)
	if dir == "" {
		dir, err = os.UserCacheDir()
		dir = filepath.Join(dir, "weir")
	}
	if err == nil {
		s.dir, err = filepath.Abs(dir) // the process may change its own
	}
	if err == nil {
		err = makeDir(s.dir)
	}
	if s.err = err; err == nil {
		s.sweep(time.Now())
	}
}

// makeDir makes a directory, and checks that other users cannot change what is in it.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkDir(dir)
}

const (
	laneFile    = ".lane"
	learnedFile = ".learned"
)

// path returns the path of a key's file, without its ending.
func (s *Store) path(key string) string {
	sum := sha256.Sum256([]byte(magic + s.Namespace + "\x00" + key))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16]))
}

// forgotten is the time without use after which a lane's files are removed. Only limits and windows
// that a user made so are longer.
const forgotten = 100 * 24 * time.Hour

// sweep removes the files of lanes that were not used for long. Processes that have one open detect it.
func (s *Store) sweep(now time.Time) {
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || now.Sub(info.ModTime()) < forgotten {
			continue
		}
		if name, ok := strings.CutSuffix(e.Name(), laneFile); ok { // each use writes it
			_ = os.Remove(filepath.Join(s.dir, name+laneFile))
			_ = os.Remove(filepath.Join(s.dir, name+learnedFile))
		}
	}
}

// Close closes every limiter of the store. Limiters then refuse with ErrClosed. It first
// sends what they hold, for 250 ms at most; the error is for what it could not write.
// Calling it again does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	open := s.open
	s.open, s.closed = nil, true
	s.mu.Unlock()
	deadline := time.Now().Add(closing)
	var errs []error
	for l := range open {
		errs = append(errs, l.end(deadline))
	}
	for l := range open {
		l.poll.call() // callers in line are refused
	}
	return errors.Join(errs...)
}
