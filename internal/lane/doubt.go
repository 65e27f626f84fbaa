package lane

import (
	"sync/atomic"

	"github.com/weirgo/weir/throttle"
)

// A doubt is the refusal of one route of a key, while it is unclear whether the
// refusal concerns the whole lane.
type doubt struct {
	key, route string
	until      throttle.Instant
}

// doubts remember the last doubt of a lane. The zero value remembers none. They
// are safe for concurrent use.
type doubts struct{ last atomic.Pointer[doubt] }

// agreed reports whether another route of the same key was refused in the same
// way and still is. If none was, it remembers this one.
func (d *doubts) agreed(now throttle.Instant, this *doubt) bool {
	for {
		was := d.last.Load()
		if was != nil && was.key == this.key && was.route != this.route && was.until > now {
			return true
		}
		if d.last.CompareAndSwap(was, this) {
			return false
		}
	}
}

// forget ends the doubt.
func (d *doubts) forget() { d.last.Store(nil) }
