package testserver

import "time"

// A bucket is the state of a token bucket. It counts in parts of 1/Per of a
// permit, so that each nanosecond adds exactly Permits parts, and a permit
// costs exactly Per parts.
type bucket struct {
	limit Limit
	level int64 // parts at hand at the time at
	at    time.Duration
}

func newBucket(l Limit) *bucket {
	b := &bucket{limit: l}
	b.level = b.full()
	return b
}

// full returns the parts in a full bucket.
func (b *bucket) full() int64 { return int64(b.limit.Burst) * int64(b.limit.Per) }

// refill adds the parts gained since the last call.
func (b *bucket) refill(now time.Duration) {
	gained := b.full() - b.level
	if past := int64(now - b.at); past <= gained/int64(b.limit.Permits) {
		gained = past * int64(b.limit.Permits)
	}
	b.level += gained
	b.at = now
}

// until returns the time until the bucket reaches a level.
func (b *bucket) until(level int64) time.Duration {
	if level <= b.level {
		return 0
	}
	return time.Duration(ceil(level-b.level, int64(b.limit.Permits)))
}

func (b *bucket) wait(now time.Duration, cost int) time.Duration {
	if cost > b.limit.Burst {
		return untold
	}
	b.refill(now)
	return b.until(int64(cost) * int64(b.limit.Per))
}

func (b *bucket) spend(_ time.Duration, cost int) { b.level -= int64(cost) * int64(b.limit.Per) }

func (b *bucket) done(int) {}

func (b *bucket) standing(now time.Duration) Standing {
	b.refill(now)
	return Standing{
		Limit:     b.limit,
		Remaining: int(b.level / int64(b.limit.Per)),
		Reset:     b.until(b.full()),
		Next:      b.until(min(b.full(), b.level-b.level%int64(b.limit.Per)+int64(b.limit.Per))),
	}
}

func (b *bucket) resume(old meter) {
	if o, ok := old.(*bucket); ok {
		permits := float64(o.level) / float64(o.limit.Per)
		b.level = min(b.full(), int64(permits*float64(b.limit.Per)))
		b.at = o.at
	}
}
