package script

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

var onlySeed = flag.Int64("seed", -1, "the one history in which the script is held against the local limiter")

// The script and the local limiter decide equally in the same history. Every other history spells
// out usual calls.
func TestScriptDecidesAsTheLocalLimiter(t *testing.T) {
	b := newBench(t)
	first, last := int64(0), int64(4*lives())
	if *onlySeed >= 0 {
		first, last = *onlySeed, *onlySeed+1
	}
	for seed := first; seed < last; seed++ {
		h := newTwin(seed)
		synctest.Test(t, func(*testing.T) { h.live() })
		b.spelled = seed%2 == 1
		if differs := h.replay(b.limiter(h.begun...)); differs != "" {
			t.Fatalf("history %d of %v (-seed %d): %s\n%s", seed, h.begun, seed, differs, strings.Join(h.trace, "\n"))
		}
	}
	t.Logf("%d histories, from -seed %d on", last-first, first)
}

// A twin is a history run by the local limiter, in a bubble whose clock its windows read, and then
// by the script.
type twin struct {
	random *rand.Rand
	begun  []throttle.Limit // at first
	limits []throttle.Limit // in force
	moves  []move
	trace  []string

	// While it runs.
	local   throttle.Limiter
	now     throttle.Instant
	paused  throttle.Instant
	exact   bool          // every interval is of whole microseconds, so that no instant is rounded
	slop    time.Duration // by which instants may differ
	settles bool
	tuned   bool
	windows bool
}

// A move is one call and the local limiter's answer.
type move struct {
	text string
	slop time.Duration
	do   func(l throttle.Limiter, at []throttle.Instant) answer
	want answer
}

// An answer is what a call returned: an instant, or a state.
type answer struct {
	at       throttle.Instant
	granted  bool
	headroom []float64
}

func newTwin(seed int64) *twin {
	h := &twin{random: rand.New(rand.NewPCG(uint64(seed), 11))}
	h.exact = h.chance(70)
	for range 1 + h.random.IntN(3)*h.random.IntN(2) {
		h.limits = append(h.limits, h.limit())
	}
	for _, l := range h.limits {
		h.windows = h.windows || windows(l.Algorithm)
		if l.Algorithm == throttle.AlgorithmSlidingWindow && len(h.limits) > 1 {
			h.exact = false // the other limits are charged at its estimated instants
		}
	}
	h.settles = h.exact && h.chance(50)
	if !h.exact {
		h.slop = 2 * time.Microsecond
	}
	h.begun = h.limits
	return h
}

func (h *twin) chance(percent int) bool { return h.random.IntN(100) < percent }

func (h *twin) limit() throttle.Limit {
	l := throttle.Limit{Algorithm: throttle.Algorithm(h.random.IntN(6)), Permits: 1 + h.random.IntN(12)}
	switch {
	case windows(l.Algorithm):
		l.Per = []time.Duration{10 * time.Millisecond, time.Second, 7 * time.Second, time.Minute, 24 * time.Hour}[h.random.IntN(5)]
		if l.Algorithm == throttle.AlgorithmFixedWindow && h.chance(30) {
			l.Align = throttle.AlignFirstUse
		} else if l.Algorithm == throttle.AlgorithmFixedWindow && h.chance(30) {
			l.Per, l.Align = 24*time.Hour, throttle.AlignDay("Europe/Berlin")
		}
	case h.exact:
		interval := []time.Duration{1, 10, 125, 1000, 33_333, 1_000_000, 3_600_000_000}[h.random.IntN(7)] * time.Microsecond
		l.Permits = 1 + h.random.IntN(1000)
		l.Per = time.Duration(l.Permits) * interval
	default:
		l.Permits = []int{3, 7, 777, 7_777, 150_000, 999_983}[h.random.IntN(6)]
		l.Per = []time.Duration{time.Second, 7 * time.Second, time.Minute}[h.random.IntN(3)]
	}
	if l.Algorithm == throttle.AlgorithmTokenBucket || l.Algorithm == throttle.AlgorithmGCRA {
		l.Burst = 1 + h.random.IntN(12)
	}
	return h.reserving(l)
}

// reserving gives every other limit that can have one a reserve.
func (h *twin) reserving(l throttle.Limit) throttle.Limit {
	l.Reserve = ""
	if l.Algorithm != throttle.AlgorithmLeakyBucket && l.Capacity() > 2 {
		l.Reserve = []throttle.Part{"", "", "", "1", "30%", "60%"}[h.random.IntN(6)]
	}
	return l
}

// live runs the history and notes each move.
func (h *twin) live() {
	h.local, _ = throttle.Local{}.Limiter("", h.limits...)
	h.now, h.paused = throttle.InstantOf(time.Now()), -1
	if h.settles {
		h.settle(h.now, throttle.Request{}, throttle.Request{}, -1)
	}
	type taken struct {
		move int
		at   throttle.Instant
		r    throttle.Request
	}
	var held []taken
	for range 40 {
		h.pass()
		switch kind := h.random.IntN(100); {
		case kind < 60:
			r := h.request()
			for range 1 + h.random.IntN(3) {
				h.avoid(r)
				if a := h.take(r); a.granted {
					held = append(held, taken{len(h.moves) - 1, a.at, r})
				} else if a.at != throttle.Never && h.chance(50) {
					h.goTo(a.at)
				}
			}
		case kind < 70 && h.exact && len(held) > 0 && !h.tuned:
			i := len(held) - 1 - min(h.random.IntN(len(held)), h.random.IntN(len(held)))
			g := held[i]
			held = append(held[:i], held[i+1:]...)
			tolerance := h.local.Tolerance()
			switch {
			case h.settles && h.chance(60):
				h.settle(g.at, g.r, h.other(g.r), g.move)
			case g.at >= h.now.Add(-tolerance) && g.at > h.paused: // one of the very instant may be of before the pause
				h.refund(g.at, g.r, g.move)
			}
		case kind < 76:
			h.pause()
		case kind < 80:
			h.tune()
		case kind < 88:
			h.state()
		}
	}
}

// inexact notes that instants are rounded from here on.
func (h *twin) inexact() {
	h.exact = false
	h.slop = 2*h.slop + 2*time.Microsecond
}

// pass lets time go by.
func (h *twin) pass() {
	l := h.limits[h.random.IntN(len(h.limits))]
	interval := l.Per / time.Duration(l.Permits)
	var d time.Duration
	switch h.random.IntN(8) {
	case 0, 1:
	case 2:
		d = interval
	case 3, 4:
		d = time.Duration(h.random.Int64N(int64(2*interval) + 1))
	case 5:
		d = time.Duration(h.random.Int64N(int64(100 * time.Millisecond)))
	default:
		d = time.Duration(h.random.Int64N(int64(l.Per) + 1))
	}
	h.goTo(h.now.Add(d))
}

// goTo waits for the first whole microsecond from an instant on.
func (h *twin) goTo(at throttle.Instant) {
	at += (1000 - at%1000) % 1000
	time.Sleep(at.Sub(h.now))
	h.now = max(h.now, at)
}

// avoid waits until the answer does not depend on rounding.
func (h *twin) avoid(r throttle.Request) {
	for range 100 {
		at := h.local.Forecast(h.now, r).At
		if d := at.Sub(h.now); h.slop == 0 || d > h.slop || d < -h.slop {
			return
		}
		h.goTo(h.now.Add(2*h.slop + time.Microsecond))
	}
}

func (h *twin) request() throttle.Request {
	r := throttle.Request{N: 1, Urgent: h.chance(40), Since: h.now.Add(-time.Duration(h.random.IntN(200)*h.random.IntN(2)) * time.Millisecond)}
	if h.chance(30) {
		r.Each = make([]int, len(h.limits))
		for i, l := range h.limits {
			r.Each[i] = h.random.IntN((l.Capacity()-l.Reserved())%12 + 1)
		}
	}
	return r
}

// other draws the actual cost of a request.
func (h *twin) other(r throttle.Request) throttle.Request {
	actual := throttle.Request{N: r.N, Each: make([]int, len(h.limits))}
	for i := range actual.Each {
		actual.Each[i] = h.random.IntN(2*r.Of(i) + 2)
	}
	return actual
}

// note does a move on the local limiter and notes it.
func (h *twin) note(text string, do func(l throttle.Limiter, at []throttle.Instant) answer) answer {
	text = fmt.Sprintf("%v %s", time.Duration(h.now-946_684_800e9), text)
	m := move{text: text, slop: h.slop, do: do}
	instants := make([]throttle.Instant, len(h.moves)+1)
	for i := range h.moves {
		instants[i] = h.moves[i].want.at
	}
	m.want = do(h.local, instants)
	h.moves = append(h.moves, m)
	return m.want
}

func (h *twin) take(r throttle.Request) answer {
	now := h.now
	return h.note(fmt.Sprintf("Take(%d, %v, urgent %v, since %v)", r.N, r.Each, r.Urgent, r.Since.Sub(now)), func(l throttle.Limiter, _ []throttle.Instant) answer {
		granted, err := l.Take(now, r)
		if err != nil {
			panic(err)
		}
		return answer{at: granted.At, granted: granted.At <= now}
	})
}

func (h *twin) refund(at throttle.Instant, r throttle.Request, move int) {
	now := h.now
	h.note(fmt.Sprintf("Refund(%v, %d, %v)", at.Sub(now), r.N, r.Each), func(l throttle.Limiter, instants []throttle.Instant) answer {
		l.Refund(now, throttle.Grant{At: instants[move]}, r)
		return answer{}
	})
}

func (h *twin) settle(at throttle.Instant, r, actual throttle.Request, move int) {
	now := h.now
	h.note(fmt.Sprintf("Settle(%v, %d %v, %v)", at.Sub(now), r.N, r.Each, actual.Each), func(l throttle.Limiter, instants []throttle.Instant) answer {
		when := now
		if move >= 0 {
			when = instants[move]
		}
		l.Settle(now, throttle.Grant{At: when}, r, actual)
		return answer{}
	})
}

// pause pauses the limiter, or ends the current pause.
func (h *twin) pause() {
	now := h.now
	if now < h.paused && h.chance(50) {
		h.note("resume", func(l throttle.Limiter, _ []throttle.Instant) answer {
			l.Reconcile(now, throttle.Fact{Resumed: true})
			return answer{}
		})
		h.paused = now
		return
	}
	until := now.Add(time.Duration(1+h.random.Int64N(int64(min(h.limits[0].Per, time.Minute)/time.Microsecond))) * time.Microsecond)
	h.note(fmt.Sprintf("pause for %v", until.Sub(now)), func(l throttle.Limiter, _ []throttle.Instant) answer {
		l.Reconcile(now, throttle.Fact{Until: until})
		return answer{}
	})
	h.paused = max(h.paused, until)
	if h.chance(30) {
		h.note("resume", func(l throttle.Limiter, _ []throttle.Instant) answer {
			l.Reconcile(now, throttle.Fact{Resumed: true})
			return answer{}
		})
		h.paused = max(h.now, 0)
	}
}

// tune replaces the limits once, while the two agree to the last bit: later a
// rounded instant could be a permit.
func (h *twin) tune() {
	if !h.exact || h.tuned {
		return
	}
	h.tuned = true
	now, limits := h.now, make([]throttle.Limit, len(h.limits))
	for i := range limits {
		limits[i] = h.limit()
		if h.chance(50) {
			limits[i].Algorithm, limits[i].Align = h.limits[i].Algorithm, h.limits[i].Align
			limits[i].Per, limits[i].Burst = h.limits[i].Per, h.limits[i].Burst
			limits[i] = h.reserving(limits[i])
		}
	}
	h.note(fmt.Sprintf("Tune(%v)", limits), func(l throttle.Limiter, _ []throttle.Instant) answer {
		if err := l.Tune(now, limits...); err != nil {
			panic(err)
		}
		return answer{}
	})
	h.limits, h.windows = limits, true
	h.inexact()
}

func (h *twin) state() {
	now := h.now
	h.note("State()", func(l throttle.Limiter, _ []throttle.Instant) answer {
		var a answer
		for _, s := range l.State(now).Limits {
			a.headroom = append(a.headroom, s.Headroom)
		}
		return a
	})
}

// replay runs the history on another limiter and returns how it differs.
func (h *twin) replay(l throttle.Limiter) string {
	instants := make([]throttle.Instant, len(h.moves))
	for i, m := range h.moves {
		got := m.do(l, instants)
		instants[i] = got.at
		h.trace = append(h.trace, fmt.Sprintf("%s = %+v", m.text, m.want))
		if off := got.at.Sub(m.want.at); got.granted != m.want.granted || off < -m.slop || off >= m.slop+time.Microsecond {
			return fmt.Sprintf("the script says %+v, %v off", got, off)
		}
		for k := range got.headroom {
			if off := got.headroom[k] - m.want.headroom[k]; m.slop == 0 && (off > 1e-6 || off < -1e-6) {
				return fmt.Sprintf("the script says %+v", got)
			}
		}
	}
	return ""
}
