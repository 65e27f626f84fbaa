package hostlocal

import (
	"cmp"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// An exchange is the part of a limiter that exchanges messages with other processes about what the
// vendor answered. It runs on a goroutine of its own, because the learner's lock may be held where
// the limiter is called. The fields but mu and again are guarded by the limiter's lock.
type exchange struct {
	limiter *limiter
	learner store.Learner // nil: the lane learns nothing

	place   int64                // up to which the messages were applied here; -1 if those in the file are others
	ordinal int64                // the latest known departure
	landed  int64                // departures whose answers were known
	lapsed  []store.OrdinalRange // departures that did not take place
	entry   store.Entry          // to send
	wanted  bool                 // the file has less than was applied here
	from    int64                // place of the first message in the file

	mu    sync.Mutex  // held by the goroutine that exchanges messages: calls of the learner must not overlap
	again atomic.Bool // messages are to be exchanged once more
}

// Replicate implements [store.Replicator]. All lanes wait for it: not long if the file is locked.
func (l *limiter) Replicate(learner store.Learner) {
	l.mu.Lock()
	l.learner.learner = learner
	l.mu.Unlock()
	x := &l.learner
	x.mu.Lock()
	if x.once(atFirst) { // a new process receives what the others have learned before its first call
		x.again.Store(true)
	}
	x.mu.Unlock()
	go x.run()
}

// Flush implements [store.Replicator].
func (l *limiter) Flush() { l.learner.start() }

// behind starts an exchange if messages of others are in the file.
func (x *exchange) behind(to int64) {
	if x.learner != nil && to != x.place {
		x.start()
	}
}

// lapse notes that a departure did not take place.
func (x *exchange) lapse(ordinal int64) {
	if x.learner == nil || ordinal == 0 {
		return
	}
	if len(x.lapsed) < 64 {
		x.lapsed = append(x.lapsed, store.OrdinalRange{First: ordinal, Count: 1})
	}
	if x.limiter.st.learned.alone == 1 || x.limiter.st.learned.ceiling > 0 {
		x.start()
	}
}

// start exchanges messages once from now on, in the background.
func (x *exchange) start() {
	if !x.again.Swap(true) {
		go x.run()
	}
}

// run exchanges messages until there is nothing to do. A goroutine that does so already does it
// instead: it looks once more after it has unlocked.
func (x *exchange) run() {
	for x.again.Load() && x.mu.TryLock() {
		for x.again.Swap(false) {
			if x.once(patience) {
				x.again.Store(true)
			}
		}
		x.mu.Unlock()
	}
}

// last sends what the learner still holds, until a deadline: the caller of Close may hold
// the learner's lock, or another process that of the file.
func (x *exchange) last(deadline time.Time) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.mu.Lock()
		for x.once(patience) {
		}
		x.mu.Unlock()
		x.run()
	}()
	select {
	case <-ended:
	case <-time.After(time.Until(deadline)):
	}
}

// How often an exchange tries to lock the file.
const (
	atFirst  = 200  // of a new lane, at once: all lanes wait
	patience = 1000 // a millisecond apart
)

// once exchanges messages once, and wakes the callers. It reports whether it must be repeated,
// because the applied messages may change the pacing, or so few tries were not enough.
func (x *exchange) once(tries int) (more bool) {
	l := x.limiter
	u, ok := x.propose()
	if !ok {
		return false
	}
	for try := range tries {
		l.mu.Lock()
		j, err := x.send(u)
		l.mu.Unlock()
		switch {
		case err == nil:
			return x.apply(&j)
		case errors.Is(err, ErrClosed):
			return false
		case tries == atFirst:
			runtime.Gosched()
		case try > 0:
			time.Sleep(time.Millisecond)
		}
	}
	return tries < patience
}

// propose returns what this process sends.
func (x *exchange) propose() (u *update, ok bool) {
	l := x.limiter
	l.mu.Lock()
	learner := x.learner
	if learner == nil || l.closed {
		l.mu.Unlock()
		return nil, false
	}
	v := store.FleetState{
		Now: throttle.InstantOf(time.Now()).Add(l.st.ahead), ClockOffset: l.off, Ordinal: x.ordinal, Landed: x.landed, Last: throttle.Instant(l.st.learned.last),
		Replicas: max(len(l.st.members), 1), RoundTrip: usualTrip, Canceled: x.lapsed,
	}
	x.lapsed = nil
	u = &update{place: x.place, ordinal: x.ordinal, landed: x.landed}
	condense := x.wanted || x.place-x.from > condenseAt
	l.mu.Unlock()

	e := learner.Propose(v)
	u.pacing = learner.Pacing(v)
	if condense && u.place > 0 {
		u.snapshot = learner.Snapshot()
	}
	for _, r := range v.Canceled {
		u.lapsed += r.Count
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	x.entry.Join(e, mostEntries)
	u.entry = x.entry
	return u, true
}

// usualTrip is how long a decision takes at most, nearly always.
const usualTrip = 100 * time.Microsecond

// send writes what this process sends, and returns the messages in the file. The limiter's
// lock is held.
func (x *exchange) send(u *update) (j journal, err error) {
	l := x.limiter
	h, err := l.begin(throttle.InstantOf(time.Now()))
	if err != nil {
		return j, err
	}
	if j, err = l.readCold(); err != nil {
		unlock(l.hot.file)
		return j, err
	}
	k := &l.st.learned
	before := *k
	took := k.take(h, &j, u)
	if j.written {
		err = l.cold.write(j.append(make([]byte, headSize)), 0)
	}
	l.unite(h)
	l.dirty = true
	if before.touched = k.touched; *k != before {
		l.st.events++
	}
	if err = cmp.Or(err, l.finish(h)); err != nil {
		return j, err
	}
	x.ordinal, x.landed, x.from = k.ordinal, k.landed, j.from
	x.entry = x.entry.Rest(took)
	return j, nil
}

// apply makes the learner apply the messages that it has not applied.
func (x *exchange) apply(j *journal) (more bool) {
	l := x.limiter
	place := x.place // changed only by the goroutine that exchanges messages
	switch {
	case j.to() < place: // it was lost, and is sent again
	case j.from > place:
		x.learner.Restore(j.snapshot)
		place = j.from
		fallthrough
	default:
		if place += each(j.entries[place-j.from:], x.learner.Apply); place < j.to() {
			place = -1 // the file was lost, and has as many messages again
		}
	}
	l.mu.Lock()
	more = place != x.place || j.to() < place || len(x.entry.Data) > 0
	x.wanted = j.to() < place
	x.place = place
	closed, held := l.closed, l.holds()
	l.mu.Unlock()
	if held {
		l.poll.mu.Lock()
		l.poll.run(everyHold)
		l.poll.mu.Unlock()
	}
	if !closed {
		l.poll.call()
	}
	return more && !closed
}

// readCold reads the journal. The file of the lane is locked.
func (l *limiter) readCold() (journal, error) {
	if f := l.cold.file; f == nil || !isAt(f, l.path+learnedFile) {
		_ = f.Close() // of nil, it does nothing
		f, err := openFile(l.path + learnedFile)
		if l.cold = (slots{file: f}); err != nil {
			return journal{}, err
		}
	}
	l.cold.head = header{} // also reads the last value again
	value, fresh, err := l.cold.read()
	if err != nil || !fresh {
		return journal{}, err
	}
	return readJournal(value), nil
}
