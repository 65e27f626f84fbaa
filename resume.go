package weir

import (
	"fmt"
	"strings"

	"github.com/weirgo/weir/throttle"
)

// Resume opens the lane of a key: an operator knows that what the server asked
// for no longer holds. Pauses of the lane, of its routes and of its credentials
// end at once, those longer than MaxPause too, also in the other processes that
// share the lane's limits through a Store that can tell them. Where the
// lane was closed one call goes first, and the others after its good answer. A
// lane that is not paused stays as it is. The key "" is also that of the lane
// that keys beyond MaxLanes share. The error says why there can be no lane of
// that key: limits that do not validate, or shaping.ErrClosed. Resume is safe
// for concurrent use.
func (t *Transport) Resume(key string) error {
	if err := t.relieve(key, (*lane).open); err != nil {
		return fmt.Errorf("weir: resuming lane %q: %w", key, err)
	}
	return nil
}

// Forget makes the lane of a key one that has learned nothing: an operator knows
// that the server's limit is another now. What its answers taught, of the lane,
// of its routes and of its credentials, is forgotten, as is what Recall told, and
// pauses end as by Resume.
// Configured limits stay, and what was used of them. The key "" is also that of
// the lane that keys beyond MaxLanes share. The error says why there can be no
// lane of that key: limits that do not validate, or shaping.ErrClosed. Forget is
// safe for concurrent use.
func (t *Transport) Forget(key string) error {
	if err := t.relieve(key, (*lane).forget); err != nil {
		return fmt.Errorf("weir: forgetting lane %q: %w", key, err)
	}
	return nil
}

// relieve does something to the lane of a key, and to its sub-lanes.
func (t *Transport) relieve(key string, do func(*lane)) error {
	t.once.Do(t.init)
	l, err := t.lanes.enter(key)
	if err != nil {
		return err
	}
	defer l.users.Add(-1)
	l.relieve(key, do)
	if o := t.lanes.overflow.Load(); o != nil && o != l && key == "" {
		o.relieve(key, do)
	}
	return nil
}

// relieve does something to the lane and to its sub-lanes; in the overflow lane to
// those that concern the key, and to all of them if it is "".
func (l *lane) relieve(key string, do func(*lane)) {
	l.doubts.forget()
	for _, sublane := range l.home.sublanesOf(l) {
		if !l.shared || key == "" || strings.HasPrefix(sublane.sub.part, partOfKey(key)) {
			do(sublane)
		}
	}
	do(l)
}

// forget forgets what the lane has learned, and ends its own pause.
func (l *lane) forget() {
	if l.gate.course != nil {
		l.gate.course.Forget()
	}
	l.open()
}

// open ends the lane's own pause.
func (l *lane) open() {
	l.toldTo.Store(0)
	l.queue.Reconcile(throttle.Fact{Resumed: true})
}
