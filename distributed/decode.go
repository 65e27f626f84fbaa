package distributed

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

// errReply is matched by the error for a reply that is none of the script's.
var errReply = errors.New("reply makes no sense")

// A reply is what the script answers. Instants are of Redis' clock, in µs.
type reply struct {
	now     int64
	seen    echo  // to be sent back with the next call
	paused  int64 // nothing departs before it; zero: not paused
	alive   int   // callers counted lately, at least 1
	period  int64 // in which this caller is counted now
	lost    bool  // the store had less than this caller had seen
	differs bool  // other limits than the caller's are in force
	healed  bool  // something in the keys made no sense, and is as new
	first   int64 // a lower bound for the first that was not granted; zero: all were
	permits []granted
	next    []int64      // of each limit: when one permit could be spent; zero: now
	limits  []limitReply // nil: the state was not asked for
	field   laneField    // the zero value: it was not told
	heard   heard        // of what is learned together; the zero value: nothing is
}

// granted are neighbours in line that may depart at one instant.
type granted struct {
	at    int64
	count int
}

// count returns how many permits were granted.
func (r *reply) count() (n int64) {
	for _, p := range r.permits {
		n += int64(p.count)
	}
	return n
}

// A limitReply is the state of a limit in force. Of a bucket owed, unit, den and
// burst hold, of the others hand, used and permits.
type limitReply struct {
	whole      bool
	owedMicros int64 // until the bucket is whole, and
	owedFrac   int64 // the fraction of a µs, in 1/den
	unit, den  int64 // unit/den µs from permit to permit
	burst      int64
	hand       int64 // permits that may go at once; negative: debt
	used       int64
	permits    int64 // in a window
}

// owed returns the intervals of a bucket that were owed, some time after it was
// told.
func (t limitReply) owed(since time.Duration) float64 {
	if t.unit == 0 {
		return 0
	}
	return t.intervals(time.Duration(t.owedMicros)*time.Microsecond-since) + float64(t.owedFrac)/float64(t.unit)
}

// intervals returns how many intervals of a bucket a time is.
func (t limitReply) intervals(d time.Duration) float64 {
	if t.unit == 0 {
		return 0
	}
	return float64(d) / 1000 * float64(t.den) / float64(t.unit)
}

// The layout of a reply, a flat array of integers.
const (
	replyHeader = 10
	permitWords = 2
	stateWords  = 6

	mostCallers = 100_000 // CALLERS of lane.lua

	mostGroups = 128 // permits of more instants than these are never granted at once

	flagLost    = 1
	flagDiffers = 2
	flagHealed  = 4
)

// decode reads the reply to a request of so many limits. The reply may be anything:
// what decode returns without an error is within bounds, and no larger than v.
func decode(v any, limits int, state bool) (reply, error) {
	words, err := integers(v)
	if err != nil {
		return reply{}, err
	}
	if len(words) < replyHeader {
		return reply{}, senseless("%d numbers", len(words))
	}
	groups, flags := words[9], words[7]
	want := int64(limits)
	if state {
		want += int64(limits) * stateWords
	}
	if groups < 0 || groups > mostGroups || int64(len(words)-replyHeader) != groups*permitWords+want {
		return reply{}, senseless("%d numbers to %d limits, with %d instants", len(words), limits, groups)
	}
	if words[5] < 1 || words[5] > mostCallers || flags > flagLost|flagDiffers|flagHealed {
		return reply{}, senseless("%d callers, with flags %d", words[5], flags)
	}
	r := reply{
		now:    words[0],
		seen:   echo{words[1], words[2], words[3]},
		paused: words[4], alive: int(words[5]), period: words[6],
		lost: flags&flagLost != 0, differs: flags&flagDiffers != 0, healed: flags&flagHealed != 0,
		first: words[8],
	}
	words = words[replyHeader:]
	if r.permits, err = decodePermits(words[:groups*permitWords]); err != nil {
		return reply{}, err
	}
	words = words[groups*permitWords:]
	r.next = words[:limits:limits]
	for _, next := range r.next {
		if next < 0 {
			return reply{}, senseless("a limit that has a permit at %d", next)
		}
	}
	if state {
		if r.limits, err = decodeStates(words[limits:], limits); err != nil {
			return reply{}, err
		}
	}
	return r, nil
}

func senseless(format string, args ...any) error {
	return fmt.Errorf("distributed: %w: %w", errReply, fmt.Errorf(format, args...))
}

// largest is the largest number that a double of Lua holds for certain.
const largest = 1<<53 - 1

// integers returns v, an array of numbers. Those of the header are not negative.
func integers(v any) ([]int64, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, senseless("a %T", v)
	}
	words := make([]int64, len(list))
	for i := range list {
		n, ok := list[i].(int64)
		if !ok || n > largest || n < -largest {
			return nil, senseless("%T at %d", list[i], i)
		}
		if n < 0 && i < replyHeader {
			return nil, senseless("%d at %d", n, i)
		}
		words[i] = n
	}
	return words, nil
}

func decodePermits(words []int64) ([]granted, error) {
	if len(words) == 0 {
		return nil, nil
	}
	permits := make([]granted, len(words)/permitWords)
	for i := range permits {
		at, count := words[i*permitWords], words[i*permitWords+1]
		if at < 0 || count < 1 || count > math.MaxInt32 {
			return nil, senseless("%d permits at %d", count, at)
		}
		permits[i] = granted{at, int(count)}
	}
	return permits, nil
}

func decodeStates(words []int64, limits int) ([]limitReply, error) {
	states := make([]limitReply, limits)
	for i := range states {
		w := words[i*stateWords : (i+1)*stateWords]
		whole, unit, den, burst := w[0], w[3], w[4], w[5]
		bucket := den > 0
		sense := whole >= 0 && whole <= 1 && w[2] >= 0 && unit >= 0 && den >= 0
		if bucket {
			sense = sense && w[1] >= 0 && w[2] < den && unit > 0 && burst > 0
		} else {
			sense = sense && burst == 0
		}
		if !sense {
			return nil, senseless("a state of %d", w)
		}
		if bucket {
			states[i] = limitReply{whole: whole == 1, owedMicros: w[1], owedFrac: w[2], unit: unit, den: den, burst: burst}
		} else {
			states[i] = limitReply{whole: whole == 1, hand: w[1], used: w[2], permits: unit}
		}
	}
	return states, nil
}

// instantOf returns an instant of Redis, given in µs.
func instantOf(micros int64) throttle.Instant { return throttle.Instant(micros) * 1000 }
