package script

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// ErrReply is matched by the error for a reply that the script never writes.
var ErrReply = errors.New("reply makes no sense")

// A Reply is the script's reply. Instants are by the clock of Redis, in µs.
type Reply struct {
	Now     int64
	Seen    Echo  // to be sent back with the next call
	Paused  int64 // no departure before it; zero: not paused
	Alive   int   // callers counted recently, at least 1
	Period  int64 // in which this caller is counted now
	Lost    bool  // the store had less than this caller had seen
	Differs bool  // other limits than the caller's are in force
	Healed  bool  // an invalid part of the keys was reset
	First   int64 // a lower bound for the first permit that was not granted; zero: all were
	Permits []Granted
	Next    []int64      // of each limit: when one permit could be spent; zero: now
	Limits  []LimitReply // nil: the state was not requested
	Field   LaneField    // zero: not in the reply
	Learned Learned      // zero: the caller learns nothing
}

// Granted are neighbours in line that may depart at one instant.
type Granted struct {
	At    int64
	Count int
}

// Count returns how many permits were granted.
func (r *Reply) Count() (n int64) {
	for _, p := range r.Permits {
		n += int64(p.Count)
	}
	return n
}

// A LimitReply is the state of a limit in force. Buckets have owed, unit, den and burst, the
// others hand, used and permits.
type LimitReply struct {
	owedMicros int64 // until the bucket is whole, and
	owedFrac   int64 // the fraction of a µs, in 1/den
	unit, den  int64 // unit/den µs from permit to permit
	Burst      int64
	Hand       int64 // permits that may go at once; negative: debt
	Used       int64
	Permits    int64 // in a window
}

// Owed returns the intervals of a bucket that were owed, some time after the reply.
func (t LimitReply) Owed(since time.Duration) float64 {
	if t.unit == 0 {
		return 0
	}
	return t.Intervals(time.Duration(t.owedMicros)*time.Microsecond-since) + float64(t.owedFrac)/float64(t.unit)
}

// Intervals returns how many intervals of a bucket a time is.
func (t LimitReply) Intervals(d time.Duration) float64 {
	if t.unit == 0 {
		return 0
	}
	return float64(d) / 1000 * float64(t.den) / float64(t.unit)
}

// The layout of a reply, a flat array of integers.
const (
	replyHeader = 10
	permitWords = 2
	stateWords  = 5

	mostCallers = 100_000 // CALLERS of lane.lua

	mostGroups = 128 // most distinct instants granted at once

	flagLost    = 1
	flagDiffers = 2
	flagHealed  = 4
)

// decode reads the reply to a request with k limits. The reply may be anything: what decode returns
// without an error is within bounds, and no larger than v.
func decode(v any, limits int, state bool) (Reply, error) {
	words, err := integers(v)
	if err != nil {
		return Reply{}, err
	}
	if len(words) < replyHeader {
		return Reply{}, senseless("%d numbers", len(words))
	}
	groups, flags := words[9], words[7]
	want := int64(limits)
	if state {
		want += int64(limits) * stateWords
	}
	if groups < 0 || groups > mostGroups || int64(len(words)-replyHeader) != groups*permitWords+want {
		return Reply{}, senseless("%d numbers to %d limits, with %d instants", len(words), limits, groups)
	}
	if words[5] < 1 || words[5] > mostCallers || flags > flagLost|flagDiffers|flagHealed {
		return Reply{}, senseless("%d callers, with flags %d", words[5], flags)
	}
	r := Reply{
		Now:    words[0],
		Seen:   Echo{words[1], words[2], words[3]},
		Paused: words[4], Alive: int(words[5]), Period: words[6],
		Lost: flags&flagLost != 0, Differs: flags&flagDiffers != 0, Healed: flags&flagHealed != 0,
		First: words[8],
	}
	words = words[replyHeader:]
	if r.Permits, err = decodePermits(words[:groups*permitWords]); err != nil {
		return Reply{}, err
	}
	words = words[groups*permitWords:]
	r.Next = words[:limits:limits]
	for _, next := range r.Next {
		if next < 0 {
			return Reply{}, senseless("a limit that has a permit at %d", next)
		}
	}
	if state {
		if r.Limits, err = decodeStates(words[limits:], limits); err != nil {
			return Reply{}, err
		}
	}
	return r, nil
}

func senseless(format string, args ...any) error {
	return fmt.Errorf("distributed: %w: %w", ErrReply, fmt.Errorf(format, args...))
}

// largest is the largest number that a Lua double holds exactly.
const largest = 1<<53 - 1

// integers returns v, an array of numbers. The header's are not negative.
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

func decodePermits(words []int64) ([]Granted, error) {
	if len(words) == 0 {
		return nil, nil
	}
	permits := make([]Granted, len(words)/permitWords)
	for i := range permits {
		at, count := words[i*permitWords], words[i*permitWords+1]
		if at < 0 || count < 1 || count > math.MaxInt32 {
			return nil, senseless("%d permits at %d", count, at)
		}
		permits[i] = Granted{at, int(count)}
	}
	return permits, nil
}

func decodeStates(words []int64, limits int) ([]LimitReply, error) {
	states := make([]LimitReply, limits)
	for i := range states {
		w := words[i*stateWords : (i+1)*stateWords]
		unit, den, burst := w[2], w[3], w[4]
		switch {
		case den > 0 && w[0] >= 0 && w[1] >= 0 && w[1] < den && unit > 0 && burst > 0:
			states[i] = LimitReply{owedMicros: w[0], owedFrac: w[1], unit: unit, den: den, Burst: burst}
		case den == 0 && w[1] >= 0 && unit >= 0 && burst == 0:
			states[i] = LimitReply{Hand: w[0], Used: w[1], Permits: unit}
		default:
			return nil, senseless("a state of %d", w)
		}
	}
	return states, nil
}

// InstantOf returns an instant of Redis, given in µs.
func InstantOf(micros int64) throttle.Instant { return throttle.Instant(micros) * 1000 }

// MostSlots keeps the script's sums of all replicas' slots exact.
const MostSlots = store.MostFlights

// A LeaseReply is the reply of the script for slots.
type LeaseReply struct {
	Has       int  // slots of this replica
	Contended bool // replicas want more slots than there are: those that are not sure are lent in turns
	Sure      int
	Extra     int // slots beyond the sure ones in its turn: 0 or 1
	Fleet     int // slots of all replicas
	Replicas  int
	Ends      time.Duration // until the next lease of another may end; zero: no other lease
}

// DecodeLease reads a reply.
func DecodeLease(v any) (got LeaseReply, err error) {
	words, err := integers(v)
	if err != nil {
		return got, err
	}
	if len(words) != 7 {
		return got, senseless("%d numbers", len(words))
	}
	for i, n := range words {
		if n < 0 || i < 6 && n > MostSlots || n > Micros(LongestPause) {
			return got, senseless("a lease of %d", words)
		}
	}
	return LeaseReply{
		Has: int(words[0]), Sure: int(words[1]), Extra: int(words[2]),
		Contended: words[3] != 0, Fleet: int(words[4]), Replicas: int(words[5]), Ends: time.Duration(words[6]) * time.Microsecond,
	}, nil
}

// LongestPause bounds how long a message or a reply may pause a lane.
const LongestPause = time.Hour
