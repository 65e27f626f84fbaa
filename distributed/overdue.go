package distributed

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// An overdue counts the permits that came from the store, and those of them that
// were void before anybody could take them, because the way to Redis is slow or this
// process stands still.
type overdue struct {
	came, void uint64           // permits since that instant
	since      throttle.Instant // zero: nothing came yet
}

const (
	overdueEvery = 10 * time.Second // how long permits are counted, and
	overdueLeast = 8                // how many at least, before they are judged
)

// count counts permits that came. All of them are void if they are not fresh.
func (o *overdue) count(permits []permit, fresh bool) {
	for i := range permits {
		if !permits[i].ahead {
			o.came += uint64(permits[i].count)
		}
	}
	if !fresh {
		o.note(permits)
	}
}

// note counts permits that were void. Of those asked for ahead it is for want of callers.
func (o *overdue) note(permits []permit) {
	for i := range permits {
		if !permits[i].ahead {
			o.void += uint64(permits[i].count)
		}
	}
}

// judge reports whether most of the permits counted so far were void, once there
// are enough, and begins anew.
func (o *overdue) judge(now throttle.Instant) bool {
	if o.since == 0 {
		o.since = now
	}
	if now.Sub(o.since) < overdueEvery || o.came < overdueLeast {
		return false
	}
	most := 2*o.void > o.came
	*o = overdue{since: now}
	return most
}
