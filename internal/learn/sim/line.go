package sim

import (
	"math"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/throttle"
)

// The line in front of the gate is first come, first served. It asks for its head as a
// shaping.Queue does: when the head arrives, at the gate's instant, and whenever the gate wakes it.

// enter puts a new call at the end of the line.
func (w *world) enter() {
	w.line = append(w.line, waiting{since: w.since(), line: w.now})
	w.joined(len(w.line)-1 == w.head)
}

// rejoin puts a refused call at the head of the line.
func (w *world) rejoin(p waiting) {
	if w.head > 0 {
		w.head--
		w.line[w.head] = p
	} else {
		w.line = slices.Insert(w.line, 0, p)
	}
	w.joined(true)
}

// joined asks for the head of the line if it is new, or due.
func (w *world) joined(head bool) {
	if head || w.due <= throttle.Instant(w.now) {
		w.pump()
	}
}

// since returns a newcomer's arrival, as counted: after a caller that left the line late, it is as
// much earlier.
func (w *world) since() throttle.Instant {
	now := throttle.Instant(w.now)
	if w.late > 0 && now <= w.lateTo {
		return now.Add(-w.late)
	}
	w.late = 0
	return now
}

// pump lets the head of the line depart, until it cannot.
func (w *world) pump() {
	now := throttle.Instant(w.now)
	due := min(w.due, now)
	for w.due = throttle.Never; w.head < len(w.line); due = now {
		p := w.line[w.head]
		granted, err := w.gate.Take(now, throttle.Request{N: 1, Since: p.since, ID: w.departed + 1})
		if err != nil {
			panic(err)
		}
		if granted.At > now {
			w.due = granted.At
			break
		}
		if late := now.Sub(max(granted.At, due)); late > 0 {
			w.late, w.lateTo = late, now.Add(w.tolerance())
		} else if granted.At == p.since {
			w.late = 0 // no permit fell due meanwhile
		}
		w.depart(p)
	}
	if w.head == len(w.line) {
		w.line, w.head = w.line[:0], 0
	}
	w.arm()
}

func (w *world) tolerance() time.Duration {
	if t := w.gate.Tolerance(); t > 0 {
		return t
	}
	return throttle.Tolerance()
}

// arm sets the timer, unless it is set; real ones wake up to a millisecond late.
func (w *world) arm() {
	switch {
	case w.due == throttle.Never:
		w.timerAt = math.MaxInt64
	case w.due != w.rings:
		w.timerAt = int64(w.due) + w.rng.Int64N(int64(time.Millisecond))
		w.push(w.timerAt, evTimer, 0)
	}
	w.rings = w.due
}

// depart sends the head of the line.
func (w *world) depart(p waiting) {
	w.head++
	if w.head > 4096 && w.head*2 > len(w.line) {
		w.line = append(w.line[:0], w.line[w.head:]...)
		w.head = 0
	}
	if w.now < w.notBefore {
		w.res.Early++
	}
	var id int32
	if n := len(w.free); n > 0 {
		id, w.free = w.free[n-1], w.free[:n-1]
	} else {
		id = int32(len(w.calls))
		w.calls = append(w.calls, call{})
	}
	w.flying++
	w.departed++
	w.calls[id] = call{line: p.line, refused: p.refused, answer: course.Answer{
		ID: w.departed, Seen: w.course.Look(), Departed: throttle.Instant(w.now), Stood: time.Duration(w.now - p.line),
	}}
	w.push(w.now+w.way(), evArrive, id)
}
