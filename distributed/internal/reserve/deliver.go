package reserve

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// unconfirmed is how long a pause holds that only a message has announced. Any publisher can
// forge one, and the script replies well within that time.
const unconfirmed = time.Second

// Deliver applies a message that the lane is paused from now on, or that a pause was ended.
// Malformed messages are ignored.
func (l *Limiter) Deliver(message string) {
	first, second, _ := strings.Cut(message, " ")
	epoch, err := strconv.ParseInt(first, 10, 64)
	micros, malformed := strconv.ParseInt(second, 10, 64)
	if cmp.Or(err, malformed) != nil || micros < 0 || micros > script.Micros(script.LongestPause) {
		return
	}
	remaining := time.Duration(micros) * time.Microsecond
	l.Mu.Lock()
	s := l.learning
	if epoch <= l.known.seen.Epoch && l.Met || l.Closed || s != nil && s.revokes {
		l.Mu.Unlock()
		return
	}
	// The next call returns what the other replicas have learned. Callers in line make one,
	// unless the learned limit holds them.
	asks := s != nil && (!l.demand.waiting || !s.counted || s.pace.NotBefore > l.view().Now)
	if (asks || remaining > unconfirmed) && !l.Lost {
		l.start(nil)
	}
	now := l.clock.Now()
	// The epoch itself comes with the reply to the next call.
	if until := now.Add(min(remaining, unconfirmed)); until > l.paused && !l.resuming() {
		l.pause(until)
		l.outage.reconcile(now, throttle.Fact{Until: until})
	} else {
		l.voided++
		l.discard(l.hand.all())
	}
	if remaining == 0 {
		l.known.ended = max(l.known.ended, epoch)
		if !l.pausing() {
			l.resume(now)
		}
	}
	l.Mu.Unlock()
	l.WakeQueue()
}
