package lane

import (
	"strings"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Resume ends the pauses of the lane of a key, and of its sub-lanes. If many
// keys share the lane, it ends those of the key's own sub-lanes. For the key
// "", it ends all pauses of the lane, and those of the shared lane too.
func (s *Lanes) Resume(l *Lane, key string) { s.relieve(l, key, (*Lane).resume) }

// Forget makes the lane of a key, and its sub-lanes, forget what they have
// learned. It ends their pauses as Resume does.
func (s *Lanes) Forget(l *Lane, key string) { s.relieve(l, key, (*Lane).forget) }

// Pause pauses the lane of a key for d. If many keys share the lane, it pauses that key alone, as
// a refusal does; for the key "", all of them.
func (s *Lanes) Pause(l *Lane, key string, d time.Duration) {
	if l.Shared && key != "" {
		if own := s.Sublane(l, PartOfKey(key), Paused); own != nil {
			defer own.Leave(nil)
			l = own
		}
	}
	l.pause(l.Now(), d, 0)
}

// relieve calls do for the lane and its sub-lanes: in the shared lane for the key's own
// alone. For the key "", it does so for all of them, and in the shared lane too.
func (s *Lanes) relieve(l *Lane, key string, do func(*Lane)) {
	l.doubt.Store(nil)
	for _, sublane := range s.sublanesOf(l) {
		if !l.Shared || key == "" || strings.HasPrefix(sublane.sub.part, PartOfKey(key)) {
			do(sublane)
		}
	}
	do(l)
	if o := s.overflow.Load(); o != nil && !l.Shared && key == "" {
		s.relieve(o, key, do)
	}
}

// PartOfKey returns how the names of a key's sub-lanes begin, in the lane that many
// keys share.
func PartOfKey(key string) string { return "key " + key + "\x00" }

// forget makes the lane forget what it has learned, and ends its own pause.
func (l *Lane) forget() {
	l.Course.Forget()
	l.buckets.Store(nil)
	l.resume()
}

func (l *Lane) resume() {
	l.pausedTo.Store(0)
	l.Queue.Reconcile(throttle.Fact{Resumed: true})
}
