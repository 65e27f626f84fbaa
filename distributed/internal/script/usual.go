package script

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

// usual reports whether the request has the short form that usual.lua reads. It must ask for
// permits of one each of one or two buckets, or of no bucket if it only sends a message.
func (r *Request) usual() bool {
	switch {
	case r.spelled || !r.Limits.Usual || !r.Update.usual(r.Limits.Learned):
		return false
	case r.Latest < 0 || r.State || len(r.Reports) > 0 || r.Seen.Generation == 0:
		return false
	case len(r.Groups) == 0:
		return r.Update != nil
	case len(r.Groups) > 1 || r.Groups[0].Age < 0: // ahead of a caller
		return false
	}
	return !slices.ContainsFunc(r.Groups[0].Costs, func(n int64) bool { return n != 1 })
}

// usualArgs appends the arguments of a usual call.
func (r *Request) usualArgs(buf []any) []any {
	var g Group
	if len(r.Groups) > 0 {
		g = r.Groups[0]
	}
	field := &r.Field
	if field.generation != r.Seen.Generation || field.epoch != r.Seen.Epoch || field.period != r.Period {
		field = new(LaneField)
	}
	const head, bucket = 15, 5
	packed := make([]byte, 0, 8*(head+talkingWords+bucket*mostUsual))
	for _, n := range [...]int64{
		r.now, Micros(r.Tolerance), Micros(r.Latest), Micros(r.Horizon), int64(r.Most),
		r.Seen.Generation, r.Seen.Epoch, r.Seen.Furthest, r.Period, int64(g.Count), Micros(g.Age), int64(r.Alive),
		field.paused, field.till, field.tuned,
	} {
		packed = binary.LittleEndian.AppendUint64(packed, uint64(max(n, 0)))
	}
	var names [2 * mostUsual]any
	limits := r.Limits.Limits
	for i := range limits {
		l := limits[i]
		if l.field == paceField {
			l.unit, l.den, l.claim = r.Update.unit, r.Update.den, r.Update.claim()
		}
		high, low := bits.Mul64(uint64(max(l.limit.Burst, 1)-1), uint64(l.unit))
		spare, rest := bits.Div64(high, low, uint64(l.den)) // until the burst is whole: µs, and the rest in 1/den
		for _, n := range [...]int64{l.unit, l.den, l.unit / l.den, int64(spare), int64(rest)} {
			packed = binary.LittleEndian.AppendUint64(packed, uint64(n))
		}
		names[2*i], names[2*i+1] = l.field, l.claim
	}
	var update, message any = "", ""
	if t := r.Update; t != nil {
		numbers := len(packed)
		for _, n := range [...]int64{t.Place, t.Ordinal, t.hold, t.since, t.keep, int64(t.Entry.Landed), t.unit, t.den, int64(t.Entry.Uncounted), int64(t.Entry.Refused), t.unbound, t.reserve} {
			packed = binary.LittleEndian.AppendUint64(packed, uint64(n))
		}
		if t.quiet() {
			update, message = packed[numbers:numbers+8*quietWords], t.Seen.text
		} else {
			update, message = packed[numbers:], t.Entry.Data
		}
		packed = packed[:numbers]
	}
	buf = append(buf, packed, field.Text, update, message)
	return append(buf, names[:2*len(limits)]...)
}

// A LaneField is the field "lane" of a lane's hash, as lane.lua has it. A usual call sends the
// value that the caller saw last, so that the script need not read it. The zero value was never
// seen.
type LaneField struct {
	Text                      string
	generation, epoch, paused int64
	period, alive, till       int64
	tuned                     int64
}

// readLaneField returns the field of a lane in which no cost is settled.
func readLaneField(text string) (f LaneField, ok bool) {
	var n [9]int64 // the last two are not always there
	words := strings.Fields(text)
	ok = readNumbers(words, n[:7]) || readNumbers(words, n[:]) && n[7] == 0
	return LaneField{
		Text: text, generation: n[0], epoch: n[1], paused: n[2],
		period: n[3], alive: max(n[4], n[5], 1), till: n[6], tuned: n[8],
	}, ok
}

// readNumbers reads the words of a field as numbers. No number is negative.
func readNumbers(words []string, numbers []int64) bool {
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

// The counts of numbers that a usual call has of an update, quiet or not.
const (
	quietWords   = 6
	talkingWords = 12
)

// usualHeader is how many words of a usual reply precede those of the limits.
const usualHeader = 4

// Decode reads the reply to the request.
func (r *Request) Decode(v any) (Reply, error) {
	limits := len(r.Limits.Limits)
	list, ok := v.([]any)
	if !ok || len(list) < usualHeader {
		return r.decodeSpelled(v)
	}
	text, ok := list[0].(string)
	if !ok || !r.usual() {
		return r.decodeSpelled(v)
	}
	quiet := r.Update != nil && r.Update.quiet()
	var h Learned
	if r.Update != nil && !quiet {
		var err error
		if list, h, err = split(v); err != nil || len(list) < usualHeader {
			return Reply{}, cmp.Or(err, senseless("%d words", len(list)))
		}
	}
	field := r.Field
	if text != "" {
		if field, ok = readLaneField(text); !ok {
			return Reply{}, senseless("a lane %q", text)
		}
	}
	words, err := integers(list[1:])
	tail := usualHeader + limits // where the pairs begin
	if quiet {
		tail += 2
	}
	pairs := len(list) - tail
	if err != nil || pairs < 0 || pairs%permitWords != 0 || pairs > mostGroups*permitWords || field.alive > mostCallers || field.alive < 1 {
		return Reply{}, senseless("%d words to %d limits: %w", len(list), limits, err)
	}
	got := Reply{
		Now: words[0], Seen: Echo{field.generation, field.epoch, words[1]}, Alive: int(field.alive), Period: field.period,
		First: words[2], Next: words[usualHeader-1:][:limits:limits], Field: field, Learned: h,
	}
	if field.paused > got.Now {
		got.Paused = field.paused
	}
	if quiet {
		got.Learned = Learned{First: words[tail-3], Landed: words[tail-2], Field: r.Update.Seen}
	}
	got.Permits, err = decodePermits(words[tail-1:])
	return got, err
}

// decodeSpelled reads the reply to a spelled-out request.
func (r *Request) decodeSpelled(v any) (got Reply, err error) {
	var h Learned
	if r.Update != nil {
		if v, h, err = split(v); err != nil {
			return got, err
		}
	}
	got, err = decode(v, len(r.Limits.Limits), r.State)
	got.Learned = h
	return got, err
}
