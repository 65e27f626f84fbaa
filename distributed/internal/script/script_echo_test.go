package script

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A holder is a caller that may hold a permit.
type holder struct {
	*caller
	held, of int64 // its instant, and the generation that granted it
}

// A stepping is a history in real time, in µs, over a store whose clock may be off.
type stepping struct {
	b       *bench
	limit   throttle.Limit
	callers []*holder
	now     int64 // in real time
	off     int64 // of the clock of the store
	left    []int64
}

func (b *bench) stepping(limit throttle.Limit, callers int, now int64) *stepping {
	s, lane := &stepping{b: b, limit: limit, now: now}, b.lane()
	for range callers {
		c := &holder{caller: b.caller(lane, limit)}
		c.horizon, c.most = 100*time.Millisecond, 1
		if !bucket(limit) {
			c.latest = time.Second
		}
		s.callers = append(s.callers, c)
	}
	return s
}

// pass makes each caller in turn ask for n permits, for a time. Granted permits depart.
func (s *stepping) pass(d, every int64, count int) {
	for i, end := 0, s.now+d; s.now < end; i, s.now = i+1, s.now+every {
		c := s.callers[i%len(s.callers)]
		c.most = count
		for _, p := range c.ask(s.now+s.off, c.line(count)).Permits {
			s.left = append(s.left, slices.Repeat([]int64{max(p.At-s.off, s.now)}, p.Count)...)
		}
	}
	slices.Sort(s.left)
}

// wait makes each caller act once a second, as a replica with a line does. It asks for one permit,
// and gives it back if it is dated later than in a second.
func (s *stepping) wait(d int64) {
	every := second / int64(len(s.callers))
	for i, end := 0, s.now+d; s.now < end; i, s.now = i+1, s.now+every {
		c := s.callers[i%len(s.callers)]
		var back []Report
		if c.held > s.now+second && c.of == c.seen.Generation {
			back = append(back, c.refund(c.held, 1))
		} else if c.held > s.now {
			continue
		}
		if c.held > 0 && c.held <= s.now {
			s.left = append(s.left, c.held)
		}
		c.held = 0
		got := c.ask(s.now, c.line(1), back...)
		c.alive = got.Alive
		for _, p := range got.Permits {
			c.held, c.of = max(p.At, s.now), c.seen.Generation
		}
	}
	slices.Sort(s.left)
}

// gap returns the time from an instant to the next departure.
func (s *stepping) gap(from int64) (longest int64) {
	last := from
	for _, at := range append(s.left, s.now) {
		if at > from {
			longest, last = max(longest, at-last), at
		}
	}
	return longest
}

// over returns by how many the departures exceed the rate plus a burst in any window.
func (s *stepping) over(more float64) (worst float64) {
	rate, least := float64(s.limit.Permits)/float64(s.limit.Per.Microseconds()), 0.0
	for i, at := range s.left { // i before it, since s.left[0]
		past := float64(i) - rate*float64(at-s.left[0])
		if i == 0 {
			least = past
		}
		least = min(least, past)
		worst = max(worst, past+1-least-more)
	}
	return worst
}

// burstInTable returns B of the table in the package documentation.
func burstInTable(l throttle.Limit) float64 {
	if l.Algorithm == throttle.AlgorithmFixedWindow {
		return float64(2 * l.Permits)
	}
	return float64(l.Capacity())
}

func intervalOf(l throttle.Limit) int64 { return l.Per.Microseconds() / int64(l.Permits) }

// The clock of Redis moves back by less and by more than the time of the limit. All callers depart
// again within 5 s, and the bound holds.
func TestAClockThatMovedBackStopsNobody(t *testing.T) {
	b := newBench(t)
	b.persist()
	daily := throttle.FixedWindow(10_000, 24*time.Hour)
	daily.Align = throttle.AlignDay("Europe/Berlin")
	first := throttle.FixedWindow(12_000, time.Minute).Aligned(throttle.AlignFirstUse)
	const noon = dawn + 12*3600*second
	for _, limit := range []throttle.Limit{
		throttle.TokenBucket(12_000, time.Minute, 20), throttle.LeakyBucket(12_000, time.Minute), throttle.TokenBucket(10, time.Minute, 10),
		throttle.FixedWindow(12_000, time.Minute), throttle.FixedWindow(1_000, time.Hour), first, daily,
		throttle.SlidingLog(12_000, time.Minute), throttle.SlidingWindow(12_000, time.Minute), throttle.SlidingWindow(1_000, time.Hour),
	} {
		for _, step := range []time.Duration{time.Second, 3 * time.Second, 30 * time.Second, 59 * time.Second, 10 * time.Minute, 59 * time.Minute, 5 * time.Hour} {
			name := fmt.Sprintf("%v %v back by %v", limit, limit.Align, step)
			s := b.stepping(limit, 2, noon-6*second)
			s.pass(11*second, second/5, 1)
			s.off = -step.Microseconds()
			from := s.now
			s.pass(15*second, second/5, 1)
			if gap, most := s.gap(from), max(5*second, intervalOf(limit)+second); gap > most {
				t.Errorf("%s: no departure for %.1f s, want %.1f at most", name, float64(gap)/second, float64(most)/second)
			}
			s = b.stepping(limit, 2, noon-2*second)
			s.pass(4*second, second, 2*limit.Permits)
			s.off = -step.Microseconds()
			s.pass(4*second, second/2, 2*limit.Permits)
			s.now = max(s.now, noon+step.Microseconds()-second) // noon again
			s.pass(3*second, second/2, 2*limit.Permits)
			if over := s.over(burstInTable(limit)); over > 1 {
				t.Errorf("%s: %v more departed than the table says", name, over)
			}
		}
	}
}

// A flush costs a slow limit at most a second and an interval, with any number of callers: holders
// of permits report them within a second.
func TestAFlushStopsASlowLimitForASecond(t *testing.T) {
	b := newBench(t)
	b.persist()
	for _, limit := range []throttle.Limit{throttle.TokenBucket(60, time.Minute, 1), throttle.TokenBucket(10, time.Minute, 1), throttle.TokenBucket(60, time.Minute, 10), throttle.LeakyBucket(10, time.Minute)} {
		s := b.stepping(limit, 20, dawn)
		s.wait(60 * second)
		b.do("DEL", s.callers[0].lane)
		from := s.now
		s.wait(60 * second)
		if gap, most := s.gap(from), 2*intervalOf(limit)+2*second; gap > most {
			t.Errorf("%v: no departure for %.1f s after a flush, want %.1f at most", limit, float64(gap)/second, float64(most)/second)
		}
		if over := s.over(2 * burstInTable(limit)); over > 1 {
			t.Errorf("%v: %v more departed than a burst for a flush", limit, over)
		}
	}
}

// Each of two buckets follows a clock that moved back, and its spent permits stay spent.
func TestAClockThatMovedBackLosesNothingOfTwoLimits(t *testing.T) {
	b := newBench(t)
	b.persist()
	fast, slow := throttle.TokenBucket(1000, time.Second, 1000), throttle.TokenBucket(5000, time.Hour, 1000)
	for _, limits := range [][]throttle.Limit{{fast, slow}, {slow, fast}} {
		for _, step := range []int64{2 * second, 10 * second, 3600 * second} {
			c := b.caller(b.lane(), limits...)
			c.latest = time.Second
			c.run(dawn, 1000)
			c.run(dawn+second, 1000)
			if again := len(c.run(dawn+2*second-step, 1000)); again > 20 {
				t.Errorf("%v, back by %d s: %d of 1000 are granted once more", limits, step/second, again)
			}
		}
	}
}
