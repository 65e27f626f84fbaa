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
	t.once.Do(t.init)
	l, err := t.lanes.enter(key)
	if err != nil {
		return fmt.Errorf("weir: resuming lane %q: %w", key, err)
	}
	defer l.users.Add(-1)
	l.resume(key)
	if o := t.lanes.overflow.Load(); o != nil && o != l && key == "" {
		o.resume(key)
	}
	return nil
}

// resume ends the pauses of the lane and of its sub-lanes; in the overflow lane
// those that concern the key, and all of them if it is "".
func (l *lane) resume(key string) {
	l.doubts.forget()
	for _, sublane := range l.home.sublanesOf(l) {
		if !l.shared || key == "" || strings.HasPrefix(sublane.sub.part, partOfKey(key)) {
			sublane.open()
		}
	}
	l.open()
}

// open ends the lane's own pause.
func (l *lane) open() {
	l.toldTo.Store(0)
	l.queue.Reconcile(throttle.Fact{Resumed: true})
}
