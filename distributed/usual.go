package distributed

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// mostUsual is how many limits a usual call has at most.
const mostUsual = 2

// usual reports whether the script is asked in few words, as usual.lua reads them: for
// permits of one each of one or two buckets, or none if it only tells, and nothing else.
func (r *request) usual() bool {
	switch {
	case r.spelled || !r.limits.usual || !r.lesson.usual(r.limits.learned):
		return false
	case !r.bounded || r.latest < 0 || r.state || len(r.reports) > 0 || r.seen.generation == 0:
		return false
	case len(r.groups) == 0:
		return r.lesson != nil
	case len(r.groups) > 1 || r.groups[0].age < 0: // of a caller who is still to come
		return false
	}
	return !slices.ContainsFunc(r.groups[0].costs, func(n int64) bool { return n != 1 })
}

// areUsual reports whether they are one or two buckets, none of them slow.
func (e *encodedLimits) areUsual() bool {
	for i := range e.limits {
		if _, windows := algorithmWord(e.limits[i].limit.Algorithm); windows || e.limits[i].slow() {
			return false
		}
	}
	return len(e.limits) > 0 && len(e.limits) <= mostUsual
}

// usualArgs appends the arguments of a usual call.
func (r *request) usualArgs(buf []any) []any {
	var g group
	if len(r.groups) > 0 {
		g = r.groups[0]
	}
	field := &r.field
	if field.generation != r.seen.generation || field.epoch != r.seen.epoch || field.period != r.period {
		field = new(laneField)
	}
	const head, bucket = 15, 5
	packed := make([]byte, 0, 8*(head+talkingWords+bucket*mostUsual))
	for _, n := range [...]int64{
		r.now, micros(r.tolerance), micros(r.latest), micros(r.horizon), int64(r.most),
		r.seen.generation, r.seen.epoch, r.seen.furthest, r.period, int64(g.count), micros(g.age), int64(r.alive),
		field.paused, field.till, field.tuned,
	} {
		packed = binary.LittleEndian.AppendUint64(packed, uint64(max(n, 0)))
	}
	var names [2 * mostUsual]any
	limits := r.limits.limits
	for i := range limits {
		l := limits[i]
		if l.field == paceField {
			l.unit, l.den, l.claim = r.lesson.unit, r.lesson.den, r.lesson.claim()
		}
		spare, rest := l.intervals(int64(max(l.limit.Burst, 1)) - 1)
		for _, n := range [...]int64{l.unit, l.den, l.unit / l.den, spare, rest} {
			packed = binary.LittleEndian.AppendUint64(packed, uint64(n))
		}
		names[2*i], names[2*i+1] = l.field, l.claim
	}
	var lesson, word any = "", ""
	if t := r.lesson; t != nil {
		numbers := len(packed)
		for _, n := range [...]int64{t.place, t.ordinal, t.hold, t.since, t.keep, int64(t.word.Landed), t.unit, t.den, int64(t.word.Uncounted), int64(t.word.Refused), t.unbound, t.reserve} {
			packed = binary.LittleEndian.AppendUint64(packed, uint64(n))
		}
		if t.quiet() {
			lesson, word = packed[numbers:numbers+8*quietWords], t.seen.text
		} else {
			lesson, word = packed[numbers:], t.word.Data
		}
		packed = packed[:numbers]
	}
	buf = append(buf, packed, field.text, lesson, word)
	return append(buf, names[:2*len(limits)]...)
}

// intervals returns the time of n permits: whole microseconds, and the rest in 1/den.
func (e *encodedLimit) intervals(n int64) (whole, rest int64) {
	high, low := bits.Mul64(uint64(n), uint64(e.unit))
	quotient, remainder := bits.Div64(high, low, uint64(e.den))
	return int64(quotient), int64(remainder)
}

// A laneField is the field "lane" of a lane's hash, as lane.lua has it. A usual call says
// what the caller saw there last, so that the script need not read it. The zero value is
// one that was not seen.
type laneField struct {
	text                      string
	generation, epoch, paused int64
	period, alive, till       int64
	tuned                     int64
}

// readLaneField returns the field of a lane in which no cost is settled.
func readLaneField(text string) (f laneField, ok bool) {
	var n [9]int64 // the last two are not always there
	ok = readNumbers(text, n[:7]) || readNumbers(text, n[:]) && n[7] == 0
	return laneField{
		text: text, generation: n[0], epoch: n[1], paused: n[2],
		period: n[3], alive: max(n[4], n[5], 1), till: n[6], tuned: n[8],
	}, ok
}

// readNumbers reads the numbers, none of them negative, of which a field consists.
func readNumbers(text string, numbers []int64) bool {
	words := strings.Fields(text)
	if len(words) != len(numbers) {
		return false
	}
	for i, word := range words {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n < 0 || n > largest {
			return false
		}
		numbers[i] = n
	}
	return true
}

// Of a lesson a usual call says so many numbers, if it is quiet or not.
const (
	quietWords   = 6
	talkingWords = 12
)

// usualHeader is how many words a usual reply has before those of the limits.
const usualHeader = 4

// decode reads the reply to the request.
func (r *request) decode(v any) (reply, error) {
	limits := len(r.limits.limits)
	list, ok := v.([]any)
	if !ok || len(list) < usualHeader {
		return r.decodeSpelled(v)
	}
	text, ok := list[0].(string)
	if !ok || !r.usual() {
		return r.decodeSpelled(v)
	}
	quiet := r.lesson != nil && r.lesson.quiet()
	var h heard
	if r.lesson != nil && !quiet {
		var err error
		if list, h, err = split(v); err != nil || len(list) < usualHeader {
			return reply{}, cmp.Or(err, senseless("%d words", len(list)))
		}
	}
	field := r.field
	if text != "" {
		if field, ok = readLaneField(text); !ok {
			return reply{}, senseless("a lane %q", text)
		}
	}
	words, err := integers(list[1:])
	tail := usualHeader + limits // where the pairs begin
	if quiet {
		tail += 2
	}
	pairs := len(list) - tail
	if err != nil || pairs < 0 || pairs%permitWords != 0 || pairs > mostGroups*permitWords || field.alive > mostCallers || field.alive < 1 {
		return reply{}, senseless("%d words to %d limits: %w", len(list), limits, err)
	}
	got := reply{
		now: words[0], seen: echo{field.generation, field.epoch, words[1]}, alive: int(field.alive), period: field.period,
		first: words[2], next: words[usualHeader-1:][:limits:limits], field: field, heard: h,
	}
	if field.paused > got.now {
		got.paused = field.paused
	}
	if quiet {
		got.heard = heard{first: words[tail-3], landed: words[tail-2], field: r.lesson.seen}
	}
	got.permits, err = decodePermits(words[tail-1:])
	return got, err
}

// decodeSpelled reads the reply to a request that was told in all words.
func (r *request) decodeSpelled(v any) (got reply, err error) {
	var h heard
	if r.lesson != nil {
		if v, h, err = split(v); err != nil {
			return got, err
		}
	}
	got, err = decode(v, len(r.limits.limits), r.state)
	got.heard = h
	return got, err
}
