package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/throttle"
)

// A room is the burst that a vendor must accept, besides the rate, so that it never refuses a
// fleet's call: the figures of "Which numbers to set" in the README, and those of package
// distributed for a fleet's faults.
type room struct {
	limit  throttle.Limit
	late   int // calls that may leave after their instant, within the permit tolerance
	cutOff int // by replicas that are cut off from Redis, beside those that are not
	lost   int // a burst whenever the state in Redis is lost
}

// findWithin is the longest time in which a replica finds a restored Redis. Meanwhile replicas that
// have found it spend the whole rate again.
const findWithin = time.Second

func roomFor(limit throttle.Limit, replicas int, events []event) room {
	m := room{limit: limit, late: late(limit)}
	if count(events, killRedis, stopRedis) > 0 {
		alone := distributed.DefaultShare * limit.PerSecond() * findWithin.Seconds()
		m.cutOff = int(math.Ceil(alone)) + replicas
	}
	m.lost = count(events, killRedis, flushRedis) * burstOf(limit)
	return m
}

// late returns how many permits fall due within the tolerance.
func late(limit throttle.Limit) int {
	return int(math.Ceil(limit.PerSecond() * throttle.Tolerance(limit).Seconds()))
}

func burstOf(l throttle.Limit) int { return max(1, l.Burst) }

func (m room) burst() int { return burstOf(m.limit) + m.late + m.cutOff + m.lost }

// inSecond returns the most calls in any second.
func (m room) inSecond() int { return int(m.limit.PerSecond()) + m.burst() }

// ideal returns the most calls of a run of that length.
func (m room) ideal(length time.Duration) float64 {
	return m.limit.PerSecond()*length.Seconds() + float64(burstOf(m.limit))
}

// String returns the parts of the burst.
func (m room) String() string {
	parts := []string{fmt.Sprintf("%d of the limit", burstOf(m.limit)), fmt.Sprintf("%d for late calls", m.late)}
	if m.cutOff > 0 {
		parts = append(parts, fmt.Sprintf("%d for replicas that lose Redis", m.cutOff))
	}
	if m.lost > 0 {
		parts = append(parts, fmt.Sprintf("%d for lost state", m.lost))
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}
