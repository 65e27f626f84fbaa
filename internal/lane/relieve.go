package lane

import (
	"strings"

	"github.com/weirgo/weir/throttle"
)

// Resume ends the pauses of the lane and of its sub-lanes. In the lane that many
// keys share those are the sub-lanes of this key, or all if the key is "", and for
// the key "" it ends the pauses of the shared lane too.
func (s *Lanes) Resume(l *Lane, key string) { s.relieve(l, key, (*Lane).resume) }

// Forget makes the lane and its sub-lanes forget what they have learned, and ends
// their pauses as Resume does.
func (s *Lanes) Forget(l *Lane, key string) { s.relieve(l, key, (*Lane).forget) }

// relieve calls do for the lane and for its sub-lanes, and for those of the shared
// lane if the key is "".
func (s *Lanes) relieve(l *Lane, key string, do func(*Lane)) {
	l.relieve(key, do)
	if o := s.overflow.Load(); o != nil && o != l && key == "" {
		o.relieve(key, do)
	}
}

func (l *Lane) relieve(key string, do func(*Lane)) {
	l.doubts.forget()
	for _, sublane := range l.home.sublanesOf(l) {
		if !l.shared || key == "" || strings.HasPrefix(sublane.sub.part, PartOfKey(key)) {
			do(sublane)
		}
	}
	do(l)
}

// PartOfKey returns how the names of a key's sub-lanes begin, in the lane that many
// keys share.
func PartOfKey(key string) string { return "key " + key + "\x00" }

// forget makes the lane forget what it has learned, and ends its own pause.
func (l *Lane) forget() {
	if l.gate.course != nil {
		l.gate.course.Forget()
	}
	l.resume()
}

// resume ends the lane's own pause.
func (l *Lane) resume() {
	l.toldTo.Store(0)
	l.queue.Reconcile(throttle.Fact{Resumed: true})
}
