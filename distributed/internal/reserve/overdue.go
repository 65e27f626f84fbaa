package reserve

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// An overdue counts the permits that came from the store, and those of them that were void
// before a caller could take them, because the way to Redis is slow or this process stands
// still.
type overdue struct {
	came, void uint64           // permits since that instant
	since      throttle.Instant // zero: no permit came yet
}

const (
	overdueEvery = 10 * time.Second // how long permits are counted, and
	overdueLeast = 8                // how many at least, before they are judged
)

// awaited returns how many permits were asked for by callers in line. The others may be void
// only because no caller came.
func awaited(permits []permit) (n uint64) {
	for i := range permits {
		if !permits[i].ahead {
			n += uint64(permits[i].count)
		}
	}
	return n
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
