package script

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// paceField is the field of a lane's hash that is the bucket of the learned pace. paceClaim is what
// callers claim of it; its interval is in their updates.
const (
	paceField = "~"
	paceClaim = "b 1 1 1 1 1 -"
)

// LearnedName is the name of the limit that was learned.
const LearnedName = "learned"

// mostSnapshot bounds a snapshot that another replica wrote, in bytes.
const mostSnapshot = 64 << 10

// Condense is how many bytes of messages the store holds until the next caller replaces
// them by a snapshot of all that it has learned: 50 to 150 messages.
const Condense = 16 << 10

// An Update is the part of a call about learned limits, as the script reads it, with times in µs.
type Update struct {
	Place, Ordinal int64
	Landed         int64 // departures whose answers the store knew, if it has lost them
	Entry          store.Entry
	pacing
	Snapshot []byte
	Lapsed   int64        // departures that were granted here and will not take place
	Seen     LearnedField // as the caller saw it last
	Lively   bool         // others sent messages recently, and may have more
}

// A pacing is a [store.Pacing] on the wire. Departures are unit/den µs apart, and begin at hold.
// Those after the ordinal since go one by one if alone is 1. What was learned is kept for keep. If
// unbound is 1, readings set no ceiling.
type pacing struct{ unit, den, hold, alone, since, keep, unbound, reserve int64 }

// NewUpdate returns an update with a pace.
func NewUpdate(p store.Pacing) *Update {
	unit, den := int64(1), int64(1)
	if p.Interval > 0 {
		unit, den = reduce(int64(min(p.Interval, 31*24*time.Hour)), 1000) // at most a month
	}
	t := &Update{pacing: pacing{
		unit: unit, den: den, hold: max(int64(p.NotBefore)/1000, 0), since: max(p.ProbeAfter, 0), keep: max(Micros(p.TTL), 0), reserve: int64(max(p.Reserve, 0)),
	}}
	if p.Probe {
		t.alone = 1
	}
	if p.Unbound {
		t.unbound = 1
	}
	return t
}

// usual reports whether a usual call can send the update, as usual.lua reads it. Callers must not
// depart one by one, no grant may be void, and the messages since the caller's place must still be
// there. If the pace is one of the limits it must not be slow. A nil update, of a caller that
// learns nothing, is usual.
func (t *Update) usual(paced bool) bool {
	if t == nil {
		return true
	}
	s := &t.Seen
	return s.text != "" && t.Place >= s.From && t.Place <= s.To && t.alone == 0 && s.alone == 0 && s.ceiling == 0 &&
		t.Entry.Reading.Ordinal == 0 && !t.Entry.Revoke && t.Snapshot == nil && t.Lapsed == 0 && (!paced || t.unit/t.den <= 1_000_000)
}

// quiet reports whether the caller has no message and, most likely, has applied all entries,
// and the pace that the store knows is the caller's.
func (t *Update) quiet() bool {
	return !t.Lively && t.Place == t.Seen.To && t.pacing == t.Seen.pacing && len(t.Entry.Data) == 0 && t.Entry.Uncounted == 0
}

// args appends the arguments of the script.
func (t *Update) args(buf []any) []any {
	return append(buf, t.Place, t.Ordinal, t.Entry.Uncounted, asFlag(t.Entry.Revoke), t.unit, t.den,
		t.hold, t.alone, t.since, t.keep, t.Entry.Data, t.Snapshot, t.Lapsed, t.Entry.Landed, t.Entry.Refused,
		t.Entry.Reading.Ordinal, t.Entry.Reading.Left, t.Entry.Reading.Landed, t.unbound, t.reserve, t.Landed)
}

// claim returns the claim of the pace as stored.
func (t *Update) claim() string {
	return "b 1 1 " + strconv.FormatInt(t.unit, 10) + " " + strconv.FormatInt(t.den, 10) + " 1 -"
}

// A LearnedField is the field "learned" of a lane's hash, as learned.lua has it. A usual call sends
// the value that the caller saw last, so that the script need not read it. The zero value was not
// seen.
type LearnedField struct {
	text     string
	From, To int64 // the places of the entries
	ceiling  int64 // departures above it go one by one; zero: no ceiling
	pacing
}

// readLearnedField returns the field of a lane.
func readLearnedField(text string) (f LearnedField, ok bool) {
	var n [16]int64
	ok = readNumbers(strings.Fields(text), n[:]) && n[0] <= n[1] && n[2] > 0 && n[3] > 0
	return LearnedField{
		text: text, From: n[0], To: n[1], ceiling: n[12],
		pacing: pacing{unit: n[2], den: n[3], hold: n[4], alone: n[5], since: n[6], keep: n[9], unbound: n[10], reserve: n[11]},
	}, ok
}

// A Learned is the part of a reply about learned limits.
type Learned struct {
	First    int64        // the ordinal before the first permit of the reply
	Landed   int64        // departures whose answers the store knows; zero: not in the reply
	Took     bool         // the caller's message was appended
	Snapshot string       // of what was learned at Field.From, for a caller with an earlier place
	Entries  string       // since the caller's place, in frames
	Field    LearnedField // as it is now
}

// learnedWords is the number of elements at a reply's end that hold it.
const learnedWords = 6

// split splits the learned part from a reply.
func split(v any) (rest []any, h Learned, err error) {
	list, ok := v.([]any)
	n := len(list) - learnedWords
	if !ok || n < 0 {
		return nil, h, senseless("a %T without what was learned", v)
	}
	numbers, err := integers(list[n : n+3])
	if err != nil {
		return nil, h, err
	}
	var texts [3]string
	for i, text := range list[n+3:] {
		if texts[i], ok = text.(string); !ok {
			return nil, h, senseless("a %T of what was learned", text)
		}
	}
	field, ok := readLearnedField(texts[2])
	if !ok || len(texts[0]) > mostSnapshot {
		return nil, h, senseless("%d bytes of what was learned, with %q", len(texts[0]), texts[2])
	}
	return list[:n], Learned{numbers[0], numbers[2], numbers[1] == 1, texts[0], texts[1], field}, nil
}

// Frames calls apply with the content of each frame, and returns how many bytes were valid.
func Frames(entries string, apply func([]byte, int64, throttle.Instant)) (read int64) {
	for len(entries) > 0 {
		var head [3]int64 // the ordinal, the instant and the length
		words := strings.SplitN(entries, " ", 4)
		if len(words) < 4 || !readNumbers(words[:3], head[:]) || head[2] > int64(len(words[3])) {
			return read
		}
		apply([]byte(words[3][:head[2]]), head[0], InstantOf(head[1]))
		rest := words[3][head[2]:]
		read += int64(len(entries) - len(rest))
		entries = rest
	}
	return read
}

// Learning returns the limits with the learned one as the last. Its interval is in updates, so the
// limits stay as they are when it changes.
func (e *EncodedLimits) Learning() *EncodedLimits {
	learned := encodedLimit{limit: LearnedLimit(0), field: paceField, claim: paceClaim, unit: 1, den: 1}
	usual := len(e.Limits) < mostUsual && (e.Usual || len(e.Limits) == 0)
	return &EncodedLimits{Limits: append(slices.Clip(e.Limits), learned), logs: e.logs, Learned: true, Usual: usual, Reserves: e.Reserves}
}

// LearnedLimit returns the limit of an interval.
func LearnedLimit(d time.Duration) throttle.Limit {
	return throttle.TokenBucket(1, max(d, time.Microsecond), 1).Named(LearnedName)
}
