package distributed

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/throttle"
)

// paceField is the field of a lane's hash that is the bucket of the learned pace, and
// paceClaim what callers claim of it: its interval stands in their lessons.
const (
	paceField = "~"
	paceClaim = "b 1 1 1 1 1 -"
)

// learnedName is the name of the limit that was learned.
const learnedName = "learned"

// mostMind bounds a snapshot that another replica wrote, in bytes.
const mostMind = 64 << 10

// condense is how many bytes of messages the store holds until the next caller replaces
// them by a snapshot of all that it has learned: some fifty calls.
const condense = 4 << 10

// A lesson is what a call tells of what is learned together, as the script reads it: with
// times in µs.
type lesson struct {
	place, ordinal int64
	landed         int64 // departures whose answers the store knew of, if it has lost them
	word           store.Entry
	pacing
	mind   []byte
	lapsed int64        // departures that were granted here and will not take place
	seen   learnedField // as the caller saw it last
	lively bool         // others told something lately, and may have again
}

// A pacing is a [store.Pacing] on the wire. From one departure to the next are
// unit/den µs; before hold nobody departs; those after the ordinal since go one by one
// if alone is 1; and what was learned is kept for so long. If unbound is 1, readings hold nobody.
type pacing struct{ unit, den, hold, alone, since, keep, unbound, reserve int64 }

// newLesson returns a lesson of a pace.
func newLesson(p store.Pacing) *lesson {
	unit, den := interval(p.Interval)
	t := &lesson{pacing: pacing{
		unit: unit, den: den, hold: max(int64(p.NotBefore)/1000, 0), since: max(p.ProbeAfter, 0), keep: max(micros(p.TTL), 0), reserve: int64(max(p.Reserve, 0)),
	}}
	if p.Probe {
		t.alone = 1
	}
	if p.Unbound {
		t.unbound = 1
	}
	return t
}

// interval returns an interval as unit/den µs, at most a month.
func interval(d time.Duration) (unit, den int64) {
	if d <= 0 {
		return 1, 1
	}
	return reduce(int64(min(d, 31*24*time.Hour)), 1000)
}

// usual reports whether a usual call tells the lesson, as usual.lua reads it: callers do
// not go one by one, nothing that was granted is void, and what was told since the
// caller's place is still there. Paced tells whether the pace is one of the limits; then
// it must not be slow. Who learns nothing, whose lesson is nil, tells nothing either.
func (t *lesson) usual(paced bool) bool {
	if t == nil {
		return true
	}
	s := &t.seen
	return s.text != "" && t.place >= s.from && t.place <= s.to && t.alone == 0 && s.alone == 0 && s.ceiling == 0 &&
		t.word.Reading.Ordinal == 0 && !t.word.Revoke && t.mind == nil && t.lapsed == 0 && (!paced || t.unit/t.den <= 1_000_000)
}

// quiet reports whether the caller has nothing to tell and, most likely, nothing to hear,
// and the pace that the store knows is the caller's.
func (t *lesson) quiet() bool {
	return !t.lively && t.place == t.seen.to && t.pacing == t.seen.pacing && len(t.word.Data) == 0 && t.word.Uncounted == 0
}

// args appends the arguments of the script.
func (t *lesson) args(buf []any) []any {
	return append(buf, t.place, t.ordinal, t.word.Uncounted, asFlag(t.word.Revoke), t.unit, t.den,
		t.hold, t.alone, t.since, t.keep, t.word.Data, t.mind, t.lapsed, t.word.Landed, t.word.Refused,
		t.word.Reading.Ordinal, t.word.Reading.Left, t.word.Reading.Landed, t.unbound, t.reserve, t.landed)
}

// claim returns the claim of the pace as it stands in the store.
func (t *lesson) claim() string {
	return "b 1 1 " + strconv.FormatInt(t.unit, 10) + " " + strconv.FormatInt(t.den, 10) + " 1 -"
}

// A learnedField is the field "learned" of a lane's hash, as learned.lua has it. A usual
// call says what the caller saw there last, so that the script need not read it. The
// zero value is one that was not seen.
type learnedField struct {
	text     string
	from, to int64 // the places of what was told
	ceiling  int64 // departures above it go one by one; zero: there is none
	pacing
}

// readLearnedField returns the field of a lane.
func readLearnedField(text string) (f learnedField, ok bool) {
	var n [16]int64
	ok = readNumbers(text, n[:]) && n[0] <= n[1] && n[2] > 0 && n[3] > 0
	return learnedField{
		text: text, from: n[0], to: n[1], ceiling: n[12],
		pacing: pacing{unit: n[2], den: n[3], hold: n[4], alone: n[5], since: n[6], keep: n[9], unbound: n[10], reserve: n[11]},
	}, ok
}

// A heard is what a reply tells of what is learned together.
type heard struct {
	first  int64        // the ordinal before the first permit of the reply
	landed int64        // departures whose answers the store knows of; zero: it did not say
	took   bool         // the store took what the caller told
	mind   string       // what somebody knew at field.from, for a caller that has not heard so far
	told   string       // what was told since the caller's place, in frames
	field  learnedField // as it is now
}

// lessonWords is how many elements of a reply tell of it, after all others.
const lessonWords = 6

// split takes what a reply tells of a lesson from it.
func split(v any) (rest []any, h heard, err error) {
	list, ok := v.([]any)
	n := len(list) - lessonWords
	if !ok || n < 0 {
		return nil, h, senseless("a %T without what was told", v)
	}
	numbers, err := integers(list[n : n+3])
	if err != nil {
		return nil, h, err
	}
	var texts [3]string
	for i, text := range list[n+3:] {
		if texts[i], ok = text.(string); !ok {
			return nil, h, senseless("a %T of what was told", text)
		}
	}
	field, ok := readLearnedField(texts[2])
	if !ok || len(texts[0]) > mostMind {
		return nil, h, senseless("%d bytes of what was learned, with %q", len(texts[0]), texts[2])
	}
	return list[:n], heard{numbers[0], numbers[2], numbers[1] == 1, texts[0], texts[1], field}, nil
}

// frames calls hear with what each frame holds, and returns how many bytes made sense.
func frames(told []byte, hear func([]byte, int64, throttle.Instant)) (read int64) {
	for len(told) > 0 {
		var head [3]int64
		rest := told
		for i := range head {
			word, after, ok := bytes.Cut(rest, []byte(" "))
			n, err := strconv.ParseInt(string(word), 10, 64)
			if !ok || err != nil || n < 0 || n > largest {
				return read
			}
			head[i], rest = n, after
		}
		if head[2] > int64(len(rest)) {
			return read
		}
		hear(rest[:head[2]], head[0], instantOf(head[1]))
		rest = rest[head[2]:]
		read += int64(len(told) - len(rest))
		told = rest
	}
	return read
}

// learning returns the limits with what was learned as the last. Its interval stands
// in lessons, so that the limits stay as they are when it changes.
func (e *encodedLimits) learning() *encodedLimits {
	learned := encodedLimit{limit: learnedLimit(0), field: paceField, claim: paceClaim, unit: 1, den: 1}
	usual := len(e.limits) < mostUsual && (e.usual || len(e.limits) == 0)
	return &encodedLimits{limits: append(slices.Clip(e.limits), learned), logs: e.logs, learned: true, usual: usual}
}

// learnedLimit returns the limit of an interval.
func learnedLimit(d time.Duration) throttle.Limit {
	limit := throttle.TokenBucket(1, max(d, time.Microsecond), 1).Named(learnedName)
	return limit
}
