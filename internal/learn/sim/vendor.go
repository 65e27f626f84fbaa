package sim

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A Rule is one limit that a simulated vendor enforces. Exactly one algorithm
// is chosen by Kind.
type Rule struct {
	Kind    Kind
	Permits int           // of each Per; most calls in flight for Flight
	Per     time.Duration // zero for Flight
	Burst   int           // most permits at once, for Bucket
}

// A Kind is the algorithm of a Rule.
type Kind uint8

// The kinds of rules.
const (
	Bucket   Kind = iota // a token bucket
	Fixed                // windows aligned with the vendor's clock
	FirstUse             // windows that begin with the first call after the last one
	Log                  // at most Permits in any Per
	Sliding              // two counters, the previous weighted
	Flight               // calls being served at one time
)

func (k Kind) String() string {
	return [...]string{"bucket", "fixed", "first", "log", "sliding", "flight"}[k]
}

// String writes the rule as a row names it.
func (r Rule) String() string {
	per := r.Per.String()
	switch r.Per {
	case time.Second:
		per = "s"
	case time.Minute:
		per = "min"
	case time.Hour:
		per = "h"
	}
	switch r.Kind {
	case Flight:
		return fmt.Sprintf("%d in flight", r.Permits)
	case Bucket:
		return fmt.Sprintf("%d/%s burst %d", r.Permits, per, r.Burst)
	}
	return fmt.Sprintf("%v %d/%s", r.Kind, r.Permits, per)
}

// PerSecond returns the rule's long-run rate; +Inf for Flight.
func (r Rule) PerSecond() float64 {
	if r.Kind == Flight {
		return math.Inf(1)
	}
	return float64(r.Permits) / r.Per.Seconds()
}

// A Vendor is a simulated vendor's rules, all enforced at once.
type Vendor struct {
	Rules         []Rule
	RefusalsCount bool          // a refused call spends too
	Block         time.Duration // after a refusal, all calls are refused for this long
}

// A meter is the state of one rule.
type meter struct {
	Rule
	level float64 // permits left, of a bucket
	at    int64   // when level was right
	start int64   // of the window
	used  int     // in the window; calls in flight
	last  int     // used in the window before
	ring  []int64 // departures counted by a log
	head  int     // the oldest of them
	n     int     // how many are counted
}

func newMeter(r Rule, now int64) *meter {
	m := &meter{Rule: r, at: now, start: math.MinInt64 / 2}
	switch r.Kind {
	case Bucket:
		m.level = float64(r.Burst)
	case Log:
		m.ring = make([]int64, r.Permits)
	}
	return m
}

// pass brings the meter to the instant now.
func (m *meter) pass(now int64) {
	per := int64(m.Per)
	switch m.Kind {
	case Bucket:
		if now > m.at {
			m.level = min(float64(m.Burst), m.level+float64(now-m.at)*float64(m.Permits)/float64(per))
			m.at = now
		}
	case Fixed, Sliding:
		if begin := now - now%per; begin > m.start {
			m.last = 0
			if begin == m.start+per {
				m.last = m.used
			}
			m.start, m.used = begin, 0
		}
	case FirstUse:
		if now >= m.start+per {
			m.used = 0
		}
	case Log:
		for m.n > 0 && m.ring[m.head] <= now-per {
			m.head = (m.head + 1) % len(m.ring)
			m.n--
		}
	}
}

// left returns how many calls could be accepted at once.
func (m *meter) left(now int64) int {
	m.pass(now)
	switch m.Kind {
	case Bucket:
		return int(math.Floor(m.level + 1e-9))
	case Log:
		return m.Permits - m.n
	case Sliding:
		share := 1 - float64(now-m.start)/float64(m.Per)
		return max(0, int(float64(m.Permits)-float64(m.used)-math.Floor(float64(m.last)*share)))
	}
	return m.Permits - m.used
}

func (m *meter) spend(now int64) {
	switch m.Kind {
	case Bucket:
		m.level--
	case Log:
		if m.n == len(m.ring) { // refusals that count push the oldest out
			m.head = (m.head + 1) % len(m.ring)
			m.n--
		}
		m.ring[(m.head+m.n)%len(m.ring)] = now
		m.n++
	case FirstUse:
		if m.used == 0 {
			m.start = now
		}
		m.used++
	default:
		m.used++
	}
}

// wait returns how long until a call would be accepted alone; zero if at once, or if unknown.
func (m *meter) wait(now int64) time.Duration {
	if m.left(now) > 0 {
		return 0
	}
	switch m.Kind {
	case Bucket:
		return time.Duration((1 - m.level) * float64(m.Per) / float64(m.Permits))
	case Log:
		return time.Duration(m.ring[m.head] + int64(m.Per) - now)
	case Flight:
		return 0
	}
	return time.Duration(m.start + int64(m.Per) - now)
}

// whole returns how long until the rule is as good as new.
func (m *meter) whole(now int64) time.Duration {
	m.pass(now)
	switch m.Kind {
	case Bucket:
		return time.Duration((float64(m.Burst) - m.level) * float64(m.Per) / float64(m.Permits))
	case Log:
		if m.n == 0 {
			return 0
		}
		return time.Duration(m.ring[m.head] + int64(m.Per) - now)
	case Flight:
		return 0
	}
	return max(0, time.Duration(m.start+int64(m.Per)-now))
}

// next returns how long until one more call than now would be accepted.
func (m *meter) next(now int64) time.Duration {
	left := float64(m.left(now))
	switch {
	case m.Kind != Bucket:
		return m.whole(now)
	case left >= float64(m.Burst):
		return 0
	}
	return time.Duration((left + 1 - m.level) * float64(m.Per) / float64(m.Permits))
}

func (m *meter) quota() int {
	if m.Kind == Bucket {
		return m.Burst
	}
	return m.Permits
}

// A door is the running state of a Vendor.
type door struct {
	Vendor
	meters  []*meter
	blocked int64
}

func newDoor(v Vendor, now int64) *door {
	d := &door{Vendor: v, blocked: 0}
	for _, r := range v.Rules {
		d.meters = append(d.meters, newMeter(r, now))
	}
	return d
}

// clone returns a copy.
func (d *door) clone() *door {
	c := *d
	c.meters = nil
	for _, m := range d.meters {
		copied := *m
		copied.ring = slices.Clone(m.ring)
		c.meters = append(c.meters, &copied)
	}
	return &c
}

// become changes the rules; of equal kinds the use is kept.
func (d *door) become(v Vendor, now int64) {
	old := d.meters
	*d = *newDoor(v, now)
	for i, m := range d.meters {
		if i >= len(old) || old[i].Kind != m.Kind {
			continue
		}
		o := old[i]
		o.pass(now)
		m.level, m.start, m.used, m.last = min(o.level, float64(m.Burst)), o.start, o.used, o.last
		if m.Per != o.Per && m.Kind != FirstUse {
			m.start = math.MinInt64 / 2
		}
		for k := max(0, o.n-m.Permits); m.Kind == Log && k < o.n; k++ {
			m.ring[m.n] = o.ring[(o.head+k)%len(o.ring)]
			m.n++
		}
	}
}

// arrive decides on one call.
func (d *door) arrive(now int64) bool {
	ok := now >= d.blocked
	exhausted := false
	for _, m := range d.meters {
		if m.left(now) < 1 {
			exhausted = true
		}
	}
	if exhausted && ok && d.Block > 0 {
		d.blocked = now + int64(d.Block)
	}
	ok = ok && !exhausted
	for _, m := range d.meters {
		if ok || d.RefusalsCount && m.Kind != Flight {
			m.spend(now)
		}
	}
	return ok
}

// done frees the place of a served call.
func (d *door) done() {
	for _, m := range d.meters {
		if m.Kind == Flight && m.used > 0 {
			m.used--
		}
	}
}

// wait returns how long until a call would be accepted; zero if unknown.
func (d *door) wait(now int64) time.Duration {
	w := time.Duration(max(0, d.blocked-now))
	for _, m := range d.meters {
		w = max(w, m.wait(now))
	}
	return w
}
