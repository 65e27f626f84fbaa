package hostlocal

import (
	"encoding"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A decider is a limiter of throttle.Local, whose state is stored.
type decider interface {
	throttle.Limiter
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

// errBusy is the error if another process holds the lock.
var errBusy = errors.New("another process holds its lock; it may be stopped")

const (
	tries   = 24          // to lock a file, some microseconds each
	checks  = time.Second // the path of an open file is checked as often
	stepped = time.Second // a wall clock set back that far was stepped
)

// begin locks the lane's file and reads its state, and returns the instant by its clock.
// If there is no error, finish must follow. The limiter's lock is held. After Close the
// error is ErrClosed: a file that was opened then would stay open.
func (l *limiter) begin(now throttle.Instant) (h throttle.Instant, err error) {
	if l.closed {
		return 0, ErrClosed
	}
	if err := l.lock(now); err != nil {
		return 0, err
	}
	strayed, err := l.load()
	if err != nil {
		unlock(l.hot.file)
		return 0, err
	}
	if strayed != "" {
		l.dirty, l.st.events = true, rand.Uint64() // others may know another file
		l.stray(strayed)
	}
	if l.before = nil; l.hot.none {
		l.before = l.encode(nil)
	}
	h = l.clock(now).Add(l.st.ahead)
	if back := l.st.wrote.Sub(h); back > stepped {
		l.st.ahead += back
		h, l.dirty = l.st.wrote, true
		l.stray(store.EventClockStepped)
	}
	if h.Sub(l.st.seen(l.id)) > refresh || !slices.ContainsFunc(l.st.claims, l.made) {
		l.dirty = true
		l.st.join(h, l.id, l.claim)
		l.unite(h)
	}
	for _, op := range l.pending {
		op(h)
		l.dirty, l.st.events = true, l.st.events+1
	}
	return h, nil
}

// made reports whether a claim is of this process's limits.
func (l *limiter) made(c claim) bool { return c.limits == l.claim }

// finish writes the state if it has changed, and unlocks the file. After an error nothing
// was spent.
func (l *limiter) finish(h throttle.Instant) error {
	defer unlock(l.hot.file)
	if !l.dirty {
		return nil
	}
	l.st.wrote = max(l.st.wrote, h)
	l.out = l.encode(append(l.out[:0], make([]byte, headSize)...))
	if err := l.hot.write(l.out, l.st.events); err != nil {
		l.hot.head = header{} // what is in memory is not what is stored
		if l.before != nil {
			l.decode(l.before, l.st.events)
		}
		return err
	}
	l.pending, l.loaded, l.dirty = l.pending[:0], true, false
	return nil
}

// lock opens and locks the lane's file. From time to time it checks that the file is still the one
// at the path: it may have been removed.
func (l *limiter) lock(now throttle.Instant) error {
	for range 3 {
		if l.hot.file == nil { // its content is new to this process
			if err := makeDir(l.store.dir); err != nil {
				return err
			}
			f, err := openFile(l.path + laneFile)
			if err != nil {
				return err
			}
			l.hot, l.checked = slots{file: f}, -1<<62 // long ago
		}
		if err := l.try(); err != nil {
			return err
		}
		if since := now.Sub(l.checked); since >= 0 && since < checks || isAt(l.hot.file, l.path+laneFile) {
			l.checked = now - now%throttle.Instant(checks)
			return nil
		}
		unlock(l.hot.file)
		l.shut()
	}
	return errBusy
}

// try locks the open file.
func (l *limiter) try() error {
	for i := range tries {
		ok, err := tryLock(l.hot.file)
		if err != nil || ok {
			return err
		}
		if i%4 == 3 {
			runtime.Gosched()
		}
	}
	return errBusy
}

// isAt reports whether an open file is the one at a path.
func isAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	at, err := os.Lstat(path)
	return err == nil && os.SameFile(open, at)
}

// shut closes the files.
func (l *limiter) shut() {
	for _, s := range []*slots{&l.hot, &l.cold} {
		if s.file != nil {
			_ = s.file.Close()
		}
		*s = slots{}
	}
}

// load reads the state if another process has changed it. Without a stored state this process's own
// stays in force: the file is new, or was replaced. The event says that the stored state is
// invalid; without the lock it may only be torn.
func (l *limiter) load() (store.Event, error) {
	value, fresh, err := l.hot.read()
	switch {
	case err != nil:
		return "", err
	case !fresh && l.hot.none && l.loaded:
		return store.EventStateLost, nil
	case !fresh:
		return "", nil
	}
	if !l.decode(value, l.hot.head.events) {
		return store.EventStateForeign, nil
	}
	l.loaded = true
	return "", nil
}

// encode appends the state to b.
func (l *limiter) encode(b []byte) []byte {
	b, _ = l.set.AppendBinary(l.st.append(b)) // the error is always nil
	return b
}

// decode puts a state in force, and reports whether it is valid.
func (l *limiter) decode(b []byte, events uint64) bool {
	st, rest, ok := readState(b, events, &l.st)
	if !ok || l.set.UnmarshalBinary(rest) != nil {
		return false
	}
	if l.st = st; !l.union.holds(&l.st) {
		l.union = unionOf(&l.st, l.limits)
	}
	return true
}

// unite puts the union of the state in force.
func (l *limiter) unite(h throttle.Instant) {
	if l.union.holds(&l.st) {
		return
	}
	old := l.union.limits
	l.union, l.dirty = unionOf(&l.st, l.limits), true
	if !slices.Equal(old, l.union.limits) {
		_ = l.set.Tune(h, l.union.limits...) // they were resolved
		l.st.events++
	}
}
